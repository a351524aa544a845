// Batches of a peer that changes some of their bytes and immediates, or writes any bytes into the ring, with either
// flow. The server keeps, answers and releases the requests that it takes, until the peer breaks a rule. With
// Flow::Read both ends also read words, and the peer's word may have any value.
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "rpc/copyrpc/ring_end.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn;
using namespace cairn::copyrpc;
using test::require;

constexpr std::uint32_t kReceives = 8;

struct Memory {
    explicit Memory(RingShape ring) : own(std::size_t{ring.blocks()} * kBlockBytes), mirror(own.size()) {}

    std::vector<std::uint8_t> own;
    std::vector<std::uint8_t> mirror;
};

struct Kept {
    std::uint32_t call;
    std::uint16_t charge;
    Held held;
};

// An answer that waits for room in the ring.
struct Late {
    std::uint32_t call;
    std::uint16_t charge;
    std::uint32_t bytes;
};

class Server {
public:
    Server(RingShape ring, Flow flow) : memory(ring), ring_(ring), flow_(flow) {}

    // Takes a batch. Returns false once the peer has broken a rule, which is counted.
    bool take(std::uint32_t immediate) {
        std::optional<Breach> breach = end_.open(BatchImmediate::parse(immediate));
        RingEnd::Taken taken;
        while (!breach) {
            if (!end_.next(taken)) {
                breach = end_.breach();
                break;
            }
            keep(taken);
        }
        return judge(breach);
    }
    // Takes the peer's word that was READ. Returns false if the word is impossible once all batches have left the ring.
    bool take_word(const ConsumerWord& word) {
        const SendLedger& send = end_.send();
        const bool all_left = send.messages() == 0;
        const std::uint32_t returned = send.sent_blocks() - send.in_flight();
        const std::uint32_t known = batches_ - (kReceives - send.receives());
        const bool can_be = is_sound(word.blocks - returned, send.in_flight()) &&
                            is_sound(word.batches - known, kReceives - send.receives());
        const bool taken = end_.on_word(word);
        require(!all_left || taken == can_be);
        return judge(taken ? std::nullopt : std::optional(Breach::BadCredit));
    }
    void answer(std::size_t which, std::uint32_t bytes) {
        if (kept_.empty()) {
            return;
        }
        const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(which % kept_.size());
        late_.push_back({at->call, at->charge, std::min(bytes, Message::answer_max(at->charge))});
        end_.release(at->held);
        kept_.erase(at);
        serve_late();
        require(flow_ == Flow::Read || late_.empty());
    }
    void serve_late() {
        while (!late_.empty()) {
            const std::vector<std::uint8_t> payload(late_.front().bytes);
            Message answer;
            answer.answer = true;
            answer.call = late_.front().call;
            answer.payload = payload;
            if (!end_.fits_answer(answer)) {
                // It fits once the peer has read the batches in the ring.
                require(end_.send().in_flight() != 0);
                break;
            }
            end_.put_answer(answer, late_.front().charge);
            late_.pop_front();
        }
        end_.send().check();
    }
    std::optional<RingWrite> next_write() {
        const std::optional<RingWrite> write = end_.next_write();
        batches_ += write ? 1U : 0U;
        end_.send().check();
        return write;
    }
    [[nodiscard]] ConsumerWord word() const { return end_.receive().word(); }
    [[nodiscard]] std::uint64_t breaches() const { return breaches_.snapshot().total(); }

    Memory memory;

private:
    // Returns whether a word is valid. It goes on modulo 2^32; an older one says nothing.
    [[nodiscard]] static bool is_sound(std::uint32_t ahead, std::uint32_t most) {
        return ahead <= most || ahead >= 1U << 31U;
    }
    void keep(const RingEnd::Taken& taken) {
        const std::span<const std::uint8_t> payload = taken.message.payload;
        for (const std::uint8_t octet : payload) {
            sum_ += octet;  // reads all bytes of the span
        }
        require(payload.empty() || (payload.data() >= memory.own.data() &&
                                    payload.data() + payload.size() <= memory.own.data() + memory.own.size()));
        if (!taken.message.answer) {
            // An answer of this length has its part of the promise, or fits into an empty ring at any place.
            const std::uint32_t most = flow_ == Flow::Credit ? ring_.promise_max() : ring_.charge_max();
            require(taken.message.charge >= 2 && taken.message.charge <= most);
            kept_.push_back({taken.message.call, taken.message.charge, taken.held});
        }
        require(kept_.size() + late_.size() <= ring_.promise_max());
    }
    bool judge(std::optional<Breach> breach) {
        if (breach) {
            breaches_.count(*breach);
        }
        require(breaches() == (breach ? 1U : 0U));
        end_.send().check();
        return !breach;
    }

    RingShape ring_;
    Flow flow_;
    RingEnd end_{memory.own, memory.mirror, kReceives, kReceives, flow_};
    std::uint32_t batches_ = 0;  // batches that left
    std::vector<Kept> kept_;
    std::deque<Late> late_;
    telemetry::CounterSet<Breach> breaches_{};
    std::uint64_t sum_ = 0;
};

class Connection {
public:
    explicit Connection(test::Input& input)
        : input_(input), ring_(16U << (input.byte() % 4U)), flow_(static_cast<Flow>(input.byte() & 1U)) {}

    // Takes one step. Returns false once the peer has broken a rule.
    bool step() {
        const std::uint8_t what = input_.byte();
        switch (what % 6U) {
            case 0:
                ask(what);
                return true;
            case 1:
                return write(what);
            case 2:
                server_.answer(input_.byte(), input_.byte() * 4U);
                return true;
            case 3:
                hear((what & 0xe0U) != 0xe0U);
                return true;
            case 4:
                return flow_ == Flow::Credit || show_word(what);
            default:
                read_word();
                return true;
        }
    }
    [[nodiscard]] bool is_honest() const { return honest_; }
    [[nodiscard]] std::uint64_t breaches() const { return server_.breaches(); }

private:
    void ask(std::uint8_t what) {
        const std::uint32_t bytes = input_.byte() * ring_.blocks() / 64U;
        const std::uint32_t answer_bytes = input_.byte() * ring_.blocks() / 64U;
        Message request;
        request.call = ++calls_;
        if ((what & 0x20U) != 0) {
            request.extension = Extension{what, what};
        }
        if ((what & 0x40U) != 0) {
            request.room = Place{0x1000, Rkey{what}, bytes};
        }
        const std::uint32_t extras = (request.extension ? 1U : 0U) + (request.room ? 1U : 0U);
        if (lives_ && client_.judge_request(bytes, extras, answer_bytes) == Room::Fits) {
            const std::vector<std::uint8_t> payload(bytes, what);
            request.payload = payload;
            asked_[request.call] = static_cast<std::uint16_t>(Message::charge_for(answer_bytes));
            client_.put_request(request, answer_bytes);
        }
    }
    bool write(std::uint8_t what) {
        while (const std::optional<RingWrite> write = client_.next_write()) {
            std::copy_n(memory_.mirror.begin() + write->offset, write->bytes,
                        server_.memory.own.begin() + write->offset);
            const bool told_apart = spoil(*write, what);
            const bool sound = server_.take(write->immediate ^ flipped_);
            require(!sound || !told_apart);
            if (!sound) {
                return false;
            }
        }
        return true;
    }
    // Changes a byte of a batch, mostly in its first blocks, or a bit of its immediate. Returns true if the server must
    // notice that: the immediate, or the header's version, number or count of messages, is another one.
    bool spoil(const RingWrite& write, std::uint8_t what) {
        flipped_ = 0;
        if ((what & 0xe0U) == 0x20U) {
            const std::uint32_t at = input_.byte() % (2 * kBlockBytes);
            std::uint8_t& octet = server_.memory.own[(write.offset + at) % server_.memory.own.size()];
            const std::uint8_t was = octet;
            octet = input_.byte();
            honest_ = false;
            return octet != was && (at == 0 || (at >= 2 && at <= 5));
        }
        if ((what & 0xe0U) == 0x40U) {
            flipped_ = 1U << (input_.byte() % 32U);
            honest_ = false;
        }
        return flipped_ != 0;
    }
    // Takes the server's batches. They may go only into the client's ring, if the client listens.
    void hear(bool listens) {
        server_.serve_late();
        lives_ = lives_ && listens;
        while (const std::optional<RingWrite> write = server_.next_write()) {
            if (!lives_) {
                honest_ = false;  // the client will not answer as it should
                continue;
            }
            std::copy_n(server_.memory.mirror.begin() + write->offset, write->bytes,
                        memory_.own.begin() + write->offset);
            std::optional<Breach> breach = client_.open(BatchImmediate::parse(write->immediate));
            RingEnd::Taken taken;
            while (!breach && lives_) {
                if (!client_.next(taken)) {
                    breach = client_.breach();
                    break;
                }
                on_answer(taken.message);
            }
            require(!breach || !honest_);
            lives_ = lives_ && !breach;  // the client may have been deceived about credits
        }
    }
    void on_answer(const Message& answer) {
        const auto found = asked_.find(answer.call);
        require(found != asked_.end() || !honest_);
        if (!answer.answer || found == asked_.end()) {
            lives_ = false;
            return;
        }
        client_.on_answered(found->second);
        asked_.erase(found);
    }
    // Lets the server READ the client's word, or the value that the client has put there.
    bool show_word(std::uint8_t what) {
        ConsumerWord word = client_.receive().word();
        if ((what & 0xe0U) == 0x20U) {
            word.blocks += 1U << (input_.byte() % 32U);
            honest_ = false;
        } else if ((what & 0xe0U) == 0x40U) {
            word.batches += 1U << (input_.byte() % 32U);
            honest_ = false;
        } else if ((what & 0xe0U) == 0x60U) {
            word = {input_.take<std::uint32_t>(), input_.take<std::uint32_t>()};
            honest_ = false;
        }
        return server_.take_word(word);
    }
    void read_word() {
        if (flow_ == Flow::Read && lives_) {
            const bool taken = client_.on_word(server_.word());
            require(taken || !honest_);
            lives_ = taken;
        }
    }

    test::Input& input_;
    RingShape ring_;
    Flow flow_;
    Server server_{ring_, flow_};
    Memory memory_{ring_};
    RingEnd client_{memory_.own, memory_.mirror, kReceives, kReceives, flow_};
    std::map<std::uint32_t, std::uint16_t> asked_;  // the charge of each call
    std::uint32_t calls_ = 0;
    std::uint32_t flipped_ = 0;  // changed bits of the immediate
    bool lives_ = true;          // the client reads the server's batches
    bool honest_ = true;         // nothing that the server has read was changed
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    Connection connection(input);
    bool sound = true;
    while (sound && !input.empty()) {
        sound = connection.step();
    }
    require(sound == (connection.breaches() == 0) && (sound || !connection.is_honest()));
    return 0;
}
