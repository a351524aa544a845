// Batches of a peer that changes some of their bytes and immediates, or writes what it likes into the ring. The server
// keeps, answers and releases what it takes for requests, until the peer breaks a rule.
#include <algorithm>
#include <array>
#include <vector>

#include "rpc/copyrpc/ring_end.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn;
using namespace cairn::copyrpc;

constexpr std::uint32_t kRingBytes = 4096;
constexpr std::uint32_t kReceives = 8;

struct Memory {
    std::array<std::uint8_t, kRingBytes> own{};
    std::array<std::uint8_t, kRingBytes> mirror{};
};

struct Kept {
    std::uint32_t call;
    std::uint16_t charge;
    Held held;
};

class Server {
public:
    // Returns false once the peer has broken a rule.
    bool take(std::uint32_t immediate) {
        bool sound = !end_.open(BatchImmediate::parse(immediate));
        while (sound) {
            const std::optional<RingEnd::Taken> taken = end_.next();
            if (!taken) {
                sound = !end_.breach();
                break;
            }
            for (const std::uint8_t octet : taken->message.payload) {
                sum_ += octet;  // reads all that is said to be there
            }
            if (!taken->message.answer) {
                kept_.push_back({taken->message.call, taken->message.charge, taken->held});
            }
        }
        end_.send().check();
        return sound;
    }
    void answer(std::size_t which, std::uint32_t bytes) {
        if (kept_.empty()) {
            return;
        }
        const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(which % kept_.size());
        const std::vector<std::uint8_t> payload(std::min(bytes, Message::answer_max(at->charge)));
        Message answer;
        answer.answer = true;
        answer.call = at->call;
        answer.payload = payload;
        end_.release(at->held);
        end_.put_answer(answer, at->charge);
        kept_.erase(at);
        end_.send().check();
    }
    // What leaves goes nowhere but into the client's ring, if it is to hear of it.
    void turn(std::array<std::uint8_t, kRingBytes>* to, RingEnd& client) {
        while (const std::optional<RingWrite> write = end_.next_write()) {
            if (to != nullptr) {
                std::copy_n(memory.mirror.begin() + write->offset, write->bytes, to->begin() + write->offset);
                if (!client.open(BatchImmediate::parse(write->immediate))) {
                    while (client.next()) {
                    }
                }
                if (client.breach()) {
                    to = nullptr;  // it was deceived about credits
                }
            }
        }
        end_.send().check();
    }

    Memory memory;

private:
    RingEnd end_{memory.own, memory.mirror, kReceives, kReceives};
    std::vector<Kept> kept_;
    std::uint64_t sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    Server server;
    Memory memory;
    RingEnd client{memory.own, memory.mirror, kReceives, kReceives};
    bool client_lives = true;
    while (!input.empty()) {
        const std::uint8_t step = input.byte();
        if (step % 4 == 0) {
            const std::uint32_t bytes = input.byte() * 2U;
            const std::uint32_t answer_bytes = input.byte();
            if (client.judge_request(bytes, (step & 4U) != 0, answer_bytes) == Room::Fits) {
                const std::vector<std::uint8_t> payload(bytes);
                Message request;
                request.call = step;
                request.payload = payload;
                if ((step & 4U) != 0) {
                    request.extension = Extension{step, step};
                }
                client.put_request(request, answer_bytes);
            }
        } else if (step % 4 == 1) {
            while (const std::optional<RingWrite> write = client.next_write()) {
                std::copy_n(memory.mirror.begin() + write->offset, write->bytes,
                            server.memory.own.begin() + write->offset);
                std::uint32_t immediate = write->immediate;
                if ((step & 0x30U) == 0x10U) {
                    server.memory.own[(write->offset + input.byte()) % kRingBytes] = input.byte();
                } else if ((step & 0x30U) == 0x20U) {
                    immediate ^= 1U << (input.byte() % 32U);
                }
                if (!server.take(immediate)) {
                    return 0;
                }
            }
        } else if (step % 4 == 2) {
            server.answer(input.byte(), input.byte());
        } else {
            server.turn(client_lives && (step & 8U) == 0 ? &memory.own : nullptr, client);
            client_lives = client_lives && (step & 8U) == 0 && !client.breach();
        }
    }
    return 0;
}
