// Bytes as the actions of three clients of a server; the input decides when they keep to the rules. They stage
// requests, change them, and write them in their slice, before it and after it. Their entries name any requests, slices
// and addresses. In all cases a request is executed in its client's slice, once and in order. A client that breaks a
// rule loses its connection with a reason, and a client that keeps to the rules gets its answers. Memory is bounded and
// is freed.
#include <algorithm>

#include "tests/fuzz/scalerpc/hosts.hpp"
#include "tests/fuzz/stranger_host.hpp"

namespace {

using namespace cairn;
using namespace cairn::scalerpc;
using test::Input;
using test::StrangerHost;

constexpr std::size_t kGuests = 3;
constexpr std::uint32_t kGuestBytes = 2048;
static_assert(kGuestBytes >= Caller::memory_for(kShape));

// A client's end of a session. Its memory is at the place of its number in the host's memory.
class FuzzedGuest {
public:
    FuzzedGuest(StrangerHost& host, std::size_t number)
        : host_(host), contact_(host.contacts()[number]), offset_(number * kGuestBytes) {}

    // Connects with a greeting; the input may change a byte of it.
    void connect(Input& input, bool is_sound, Instant now) {
        if (contact_.qp != nullptr) {
            return;
        }
        const std::span<std::uint8_t> own = host_.memory().subspan(offset_, Caller::memory_for(kShape));
        std::fill(own.begin(), own.end(), std::uint8_t{0});
        caller_.emplace(kShape, own);
        granted_ = {};
        Hello hello;
        hello.shape = kShape;
        hello.staged = {address(), host_.region().rkey()};
        hello.answers = {address() + kShape.session_bytes(), host_.region().rkey()};
        RawHello raw = hello.raw();
        const std::span<std::uint8_t> greeting{reinterpret_cast<std::uint8_t*>(&raw), sizeof(raw)};
        if (!is_sound) {
            greeting[input.byte() % greeting.size()] = input.byte();
        }
        host_.connect(contact_, kServerAddress, kService, greeting, now);
    }
    void end(bool in_order, Instant now) { host_.end(contact_, in_order, now); }
    void stage(Input& input, Instant now) {
        if (!caller_ || !caller_->has_room()) {
            return;
        }
        const std::uint8_t what = input.byte();
        const std::vector<std::uint8_t> payload(input.byte() % (kShape.message_max() + 1), what);
        const std::uint32_t left_us = (what & 0xc0U) == 0xc0U ? 1U << (what % 16U) : 0;
        (void)caller_->stage({0, static_cast<std::uint8_t>(what % 5U), left_us, payload}, 1, now);
    }
    // Takes the server's messages.
    void look() {
        if (!caller_ || !contact_.up) {
            return;
        }
        for (Caller::Slot& slot : caller_->slots()) {
            const auto bit = static_cast<std::uint32_t>(&slot - caller_->slots().data());
            Answer answer;
            if ((caller_->busy() >> bit & 1U) != 0 &&
                read_answer(caller_->answer_block(slot.sequence), slot.sequence, answer) == Look::There) {
                hear(answer.news);
                caller_->free(slot);
            }
        }
        bool nonsense = false;
        for (auto news = caller_->look_at_control(nonsense); news; news = caller_->look_at_control(nonsense)) {
            hear(*news);
        }
    }
    // Sends the entry of a client that keeps to the rules.
    void speak() {
        if (!is_welcome()) {
            return;
        }
        const Caller::Span staged = caller_->to_write();
        for (std::uint32_t sequence = staged.from; sequence != staged.to; ++sequence) {
            caller_->ready(sequence);
            write_block(caller_->staged().subspan(kShape.end_of(sequence) - kShape.bytes, kShape.bytes), sequence);
        }
        caller_->written(staged.to);
        next_ = staged.empty() ? next_ : staged.to;
        if (const std::optional<Entry> entry = caller_->entry_due(address()); entry) {
            write_entry(*entry);
            caller_->entry_written(*entry);
        }
    }
    // Sends an entry in which one number or more is arbitrary.
    void tell_of_anything(Input& input) {
        if (!is_welcome()) {
            return;
        }
        const std::uint8_t which = input.byte();
        const auto delta = static_cast<std::int8_t>(input.byte());
        const auto by = static_cast<std::uint32_t>(std::int32_t{delta});
        Entry entry;
        entry.first = granted_.accepted + ((which & 1U) != 0 ? by : 0);
        entry.count = (which & 2U) != 0 ? by : 1U + which / 64U;
        entry.longest = (which & 4U) != 0 ? 64U + by : kShape.bytes;
        entry.acknowledged = (which & 8U) != 0 ? granted_.epoch + by : granted_.epoch;
        entry.address = address() + std::uint64_t{kShape.index_of(entry.first)} * kShape.bytes;
        entry.address += (which & 16U) != 0 ? static_cast<std::uint64_t>(std::int64_t{delta}) : 0;
        write_entry(entry);
    }
    // Writes requests of about this slice, or bytes, at the place that the last grant names.
    void write_anything(Input& input) {
        if (granted_.grant.address == 0 || !is_welcome()) {
            return;
        }
        const std::uint8_t which = input.byte();
        const auto by = static_cast<std::uint32_t>(std::int32_t{static_cast<std::int8_t>(input.byte())});
        const std::uint32_t epoch = granted_.epoch + ((which & 7U) == 7U ? by : 0U);
        next_ += (which & 7U) == 6U ? by : 0U;
        for (std::uint32_t left = 1U + which / 64U; left > 0; --left) {
            std::array<std::uint8_t, kShape.bytes> block{};
            const auto type = static_cast<std::uint8_t>((which & 0x10U) != 0 ? unsigned{kKeep} : which % 5U);
            (void)put_request({next_, type, 0, {}}, epoch, block);
            if ((which & 0x38U) == 0x28U) {
                block[block.size() - 1 - input.byte() % sizeof(RawTrailer)] = input.byte();
            }
            write_block(block, next_);
            ++next_;
        }
    }
    // Changes any byte of the memory that the server READs and WRITEs.
    void change_own(Input& input) {
        const std::uint32_t at = input.take<std::uint16_t>() % Caller::memory_for(kShape);
        host_.memory()[offset_ + at] = input.byte();
    }

private:
    [[nodiscard]] bool is_welcome() const { return caller_ && contact_.up && caller_->is_welcome(); }
    [[nodiscard]] std::uint64_t address() const { return host_.region().address() + offset_; }
    // Takes a message of the server. If earlier lies make the server contradict itself, the message is dropped.
    void hear(const News& news) {
        if (news.kind == News::Kind::Grant) {
            granted_ = news;
            next_ = news.accepted;
        } else if (news.kind == News::Kind::Notice && news.epoch == granted_.epoch) {
            granted_.accepted = news.accepted;
        }
        if (news.kind != News::Kind::None) {
            (void)caller_->on_news(news);
        }
    }
    void write_block(std::span<const std::uint8_t> block, std::uint32_t sequence) {
        host_.write(contact_, block, granted_.grant.address + kShape.end_of(sequence) - kShape.bytes,
                    granted_.grant.rkey);
    }
    void write_entry(const Entry& entry) {
        const RawEntry raw = entry.raw();
        host_.write(contact_, {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, caller_->entry_at().address,
                    caller_->entry_at().rkey);
    }

    StrangerHost& host_;
    StrangerHost::Contact& contact_;
    const std::size_t offset_;
    std::optional<Caller> caller_;
    News granted_{};          // the last grant, and its notice
    std::uint32_t next_ = 0;  // the next request of that slice
};

EndpointConfig config_of(Input& input) {
    EndpointConfig config;
    config.shape = kShape;
    config.groups.size = 2;
    config.groups.slice = microseconds(50);
    config.groups.regroup_every = 2;
    config.notice_timeout = milliseconds(1);
    config.sessions_max = kSessionsMost;
    config.calls_max = 16;
    config.long_answers = 4;
    config.peer_timeout = kLeastPeerTimeout;
    if (const std::uint8_t bits = input.byte(); bits >= 0x80U) {
        config.features = {(bits & 1U) != 0, (bits & 2U) != 0,  (bits & 4U) != 0,
                           (bits & 8U) != 0, (bits & 16U) != 0, (bits & 32U) != 0};
    }
    return config;
}

class World {
public:
    explicit World(Input& input) : input_(input), config_(config_of(input)) {
        for (test::WirePort* const port : {&client_.port, &strangers_.port}) {
            port->join(server_.port);
            server_.port.join(*port);
        }
        client_.connect(now_);
        for (FuzzedGuest& guest : guests_) {
            guest.connect(input_, true, now_);
        }
        run(microseconds(200));
    }
    void step() {
        const std::uint8_t what = input_.byte();
        FuzzedGuest& guest = guests_[what / 16U % kGuests];
        switch (what % 16U) {
            case 0:
            case 1:
            case 2:
                return guest.stage(input_, now_);
            case 3:
                return guest.tell_of_anything(input_);
            case 4:
                return guest.write_anything(input_);
            case 5:
                return guest.change_own(input_);
            case 6:
                return server_.answer(input_.byte(), input_.byte(), now_);
            case 7:
                return client_.call(input_.byte(), now_);
            case 8:
                return input_.byte() < 0x40U ? guest.end((what & 0x80U) != 0, now_)
                                             : guest.connect(input_, input_.byte() < 0xc0U, now_);
            case 9:
                return run(microseconds(input_.byte() * 8));
            default:
                guest.look();
                guest.speak();
                return run(microseconds(10 * (1 + what / 64U)));
        }
    }
    // The others leave without notice.
    void finish() {
        for (FuzzedGuest& guest : guests_) {
            guest.end(false, now_);
        }
        client_.call(1, now_);
        for (int i = 0; i < 2000 && client_.is_waiting(); ++i) {
            run(microseconds(50));
        }
        test::require(!client_.is_waiting());
        client_.end();
        server_.end();
    }

private:
    void run(Duration span) {
        for (const Instant end = now_ + span; now_ < end; now_ = now_ + microseconds(10)) {
            server_.turn(now_);
            client_.turn(now_);
            strangers_.turn(now_);
        }
    }

    Input& input_;
    const EndpointConfig config_;
    Instant now_{1'000'000'000};
    FuzzedServer server_{config_};
    HonestClient client_{config_};
    StrangerHost strangers_{"10.0.0.9", kGuests, kGuests* kGuestBytes};
    std::array<FuzzedGuest, kGuests> guests_{FuzzedGuest{strangers_, 0}, FuzzedGuest{strangers_, 1},
                                             FuzzedGuest{strangers_, 2}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    World world(input);
    while (!input.empty()) {
        world.step();
    }
    world.finish();
    return 0;
}
