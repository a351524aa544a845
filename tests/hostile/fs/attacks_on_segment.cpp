// Attacks through the memory that a client shares with a shard.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "fs/message/requests.hpp"
#include "tests/hostile/fs/guest.hpp"

namespace cairn::hostile {

namespace {

// Requests of a well-behaved client, with its own file.
class Work {
public:
    Work(FsAttacker& attacker, std::uint16_t shard) : attacker_(attacker), shard_(shard) {}

    // Puts the next request into a slot's room. Returns its length.
    std::uint32_t put(std::span<std::uint8_t> room, std::uint32_t sequence) {
        const std::string name = "scribbler-" + std::to_string(::getuid()) + "-" + std::to_string(attacker_.below(4));
        const fs::RequestHead head{.shard = shard_, .sequence = sequence, .table = 1};
        switch (attacker_.below(5)) {
            case 0:
                return fs::put_request(room, head, fs::CreateRequest{kRoot, 0100600, 6, false, name, {}});
            case 1:
                return fs::put_request(room, head, fs::RemoveRequest{kRoot, false, name});
            case 2:
                return fs::put_request(room, head, fs::WalkRequest{kRoot, 6, name});
            case 3:
                return fs::put_request(room, head, fs::ListRequest{kRoot, 0});
            default:
                return fs::put_request(room, head,
                                       fs::WriteRequest{file_, grant_, attacker_.below(1U << 20U), 0,
                                                        static_cast<std::uint32_t>(attacker_.below(65536)),
                                                        static_cast<std::uint32_t>(attacker_.below(65536))});
        }
    }
    // Stores the file that an answer to a walk or a creation names.
    void learn(std::span<const std::uint8_t> bytes) {
        fs::WalkAnswer answer;
        const auto head = fs::parse_answer(bytes, answer);
        if (head && head->error == 0 && answer.is_opened) {
            file_ = answer.attributes.id;
            grant_ = {6, answer.proof};
        }
    }

private:
    FsAttacker& attacker_;
    std::uint16_t shard_;
    fs::FileId file_{};
    fs::Grant grant_{};
};

// Writes all over a segment until stop is set.
class Scribbler {
public:
    Scribbler(const fs::Segment& segment, std::uint64_t seed, bool spares_counts)
        : thread_([this, &segment, seed, spares_counts] { run(segment, seed, spares_counts); }) {}
    Scribbler(const Scribbler&) = delete;
    Scribbler& operator=(const Scribbler&) = delete;
    ~Scribbler() {
        stops_.store(true);
        thread_.join();
    }

private:
    void run(const fs::Segment& segment, std::uint64_t seed, bool spares_counts) {
        std::mt19937_64 chance(seed);
        while (!stops_.load(std::memory_order_relaxed)) {
            const auto slot = static_cast<std::uint32_t>(chance() % segment.shape().slots);
            const std::array rooms{segment.request(slot), segment.answer(slot), segment.data(slot), segment.memory()};
            const auto room = rooms[chance() % (spares_counts ? 3 : 4)];
            const std::size_t most = room.size() == segment.memory().size() ? room.size() : std::size_t{512};
            const std::size_t at = chance() % (most - 8);
            const std::uint64_t what = chance() % 2 == 0 ? chance() : chance() % 4;
            std::memcpy(room.data() + at, &what, 1 + chance() % 8);
        }
    }

    std::atomic<bool> stops_{false};
    std::thread thread_;
};

// Makes calls while another thread writes everywhere, or everywhere but in the counts.
void call_while_scribbling(FsAttacker& attacker, bool spares_counts) {
    while (!attacker.is_over()) {
        FsGuest guest(attacker);
        if (!guest.meet()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            continue;
        }
        const auto& local = guest.welcome().local;
        const std::uint16_t shard = local[attacker.below(local.size())];
        auto channel = guest.channel(shard);
        if (!channel) {
            continue;
        }
        const fs::Segment& segment = channel->segment;
        auto again = fs::Segment::map(::dup(segment.fd()), segment.shape());
        fs::ClientEnd end(std::move(again).value(), channel->bell.get());
        Work work(attacker, shard);
        const Scribbler scribbler(segment, attacker.chance(), spares_counts);
        const std::uint64_t most = spares_counts ? 20000 : 200;
        for (std::uint32_t call = 1; call != most && !attacker.is_over() && !guest.has_news(); ++call) {
            if (const auto slot = end.take_slot()) {
                end.ask(*slot, work.put(end.request(*slot), call));
                ++attacker.tally.calls;
            } else {
                end.wait(milliseconds(1));
            }
            for (std::uint32_t slot = 0; slot != segment.shape().slots; ++slot) {
                if (const auto answer = end.answer(slot)) {
                    work.learn(*answer);
                    end.give_back(slot);
                    ++attacker.tally.answers;
                }
            }
        }
        if (guest.has_news()) {
            (void)guest.channel(shard);  // reads the reason
        }
    }
}

void scribble(FsAttacker& attacker) {
    call_while_scribbling(attacker, false);
}

void scribble_in_requests(FsAttacker& attacker) {
    call_while_scribbling(attacker, true);
}

// Writes counts, lengths and bits that no client has.
void miscount(FsAttacker& attacker) {
    constexpr std::array<std::uint32_t, 6> kLengths{0, 1, fs::kRequestBytes, fs::kRequestBytes + 1, 1U << 31U, ~0U};
    while (!attacker.is_over()) {
        FsGuest guest(attacker);
        if (!guest.meet()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            continue;
        }
        auto channel = guest.channel(guest.welcome().local[0]);
        if (!channel) {
            continue;
        }
        const fs::Segment& segment = channel->segment;
        for (std::uint64_t i = 1 + attacker.below(20); i != 0; --i) {
            const auto number = static_cast<std::uint32_t>(attacker.below(segment.shape().slots));
            fs::SlotHead& slot = segment.slot(number);
            slot.request_bytes = kLengths[attacker.below(attacker.below(2) == 0 ? 3 : kLengths.size())];
            slot.answered.store(static_cast<std::uint32_t>(attacker.below(3)));
            slot.asked.fetch_add(attacker.below(8) == 0 ? static_cast<std::uint32_t>(attacker.chance()) : 1);
            segment.head().pending.fetch_or(attacker.below(4) == 0 ? ~std::uint64_t{0} : std::uint64_t{1} << number);
            (void)ring(segment.head().shard_sleeps, channel->bell.get());
            ++attacker.tally.calls;
        }
        (void)guest.channel(guest.welcome().local[0]);  // reads the reason, if more can come
    }
}

// Rings without a reason, swallows others' doorbells, and does all that is possible to the shared descriptors.
void ring_and_pull(FsAttacker& attacker) {
    FsGuest guest(attacker);
    if (!guest.meet()) {
        return;
    }
    std::vector<FsChannel> channels;
    for (int i = 0; i != 8; ++i) {
        if (auto channel = guest.channel(guest.welcome().local[attacker.below(guest.welcome().local.size())])) {
            channels.push_back(std::move(*channel));
        }
    }
    while (!attacker.is_over() && !channels.empty()) {
        FsChannel& channel = channels[attacker.below(channels.size())];
        const int bell = channel.bell.get();
        const int memory = channel.segment.fd();
        fs::SegmentHead& head = channel.segment.head();
        eventfd_t count = 0;
        ++attacker.tally.calls;
        switch (attacker.below(10)) {
            case 0:
                (void)eventfd_write(bell, ~std::uint64_t{1});
                break;
            case 1:
                (void)eventfd_read(bell, &count);
                break;
            case 2:
                ::fcntl(bell, F_SETFL, attacker.below(2) == 0 ? O_NONBLOCK : 0);
                ::fcntl(bell, F_SETFL, O_NONBLOCK);
                break;
            case 3:
                head.shard_sleeps.asleep.store(static_cast<std::uint32_t>(attacker.below(3)));
                break;
            case 4:
                head.client_sleeps.asleep.store(1);
                break;
            case 5:  // the memory is cut off, and comes back as zeros
                ::fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                            static_cast<off_t>(channel.segment.memory().size()));
                break;
            case 6:  // a sealed one can be neither cut nor sealed further
                attacker.tally.leaks += ::ftruncate(memory, 0) == 0 ? 1U : 0U;
                attacker.tally.leaks += ::ftruncate(memory, 1LL << 40) == 0 ? 1U : 0U;
                attacker.tally.leaks += ::fcntl(memory, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 ? 1U : 0U;
                break;
            case 7:
                ::flock(memory, LOCK_EX | LOCK_NB);
                break;
            default:
                head.pending.store(attacker.chance());
                (void)ring(head.shard_sleeps, bell);
                break;
        }
    }
}

constexpr std::array kOnSegment{
    FsAttack{"scribble", scribble, "calls under way while everything in the segment changes"},
    FsAttack{"scribble-requests", scribble_in_requests, "the same, but for counts: the calls go on"},
    FsAttack{"miscount", miscount, "counts, lengths and bits that no client has"},
    FsAttack{"bells", ring_and_pull, "doorbells without a reason, and whatever else shared descriptors allow"},
};

}  // namespace

std::span<const FsAttack> attacks_on_segment() {
    return kOnSegment;
}

}  // namespace cairn::hostile
