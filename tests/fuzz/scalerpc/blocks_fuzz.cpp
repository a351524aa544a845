// A client whose server writes any bytes into its answers and control words, and a server whose client writes any bytes
// into its block and entry.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "rpc/scalerpc/caller.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn;
using namespace cairn::scalerpc;

constexpr BlockShape kShape{128, 4};

// Reads all bytes of the span.
std::uint64_t read_all(std::span<const std::uint8_t> payload) {
    std::uint64_t sum = 0;
    for (const std::uint8_t octet : payload) {
        sum += octet;
    }
    return sum;
}

class Client {
public:
    void stage() {
        if (caller_.has_room()) {
            (void)caller_.stage({0, 1, 0, {}}, 1, Instant{});
        }
        if (const std::optional<Entry> entry = caller_.entry_due(0)) {
            caller_.entry_written(*entry);
        }
    }
    void write(std::uint32_t offset, std::uint8_t octet) {
        caller_.answers()[offset % caller_.answers().size()] = octet;
    }
    // Makes a block that looks like the answer to the call of this slot, if it has one.
    void make_valid(std::uint32_t slot) {
        const Caller::Slot& awaited = caller_.slots()[slot % kShape.blocks];
        const Be32 valid{valid_word(kAnswer, awaited.sequence)};
        const std::size_t end = kControlBytes + kShape.end_of(awaited.sequence);
        std::memcpy(caller_.answers().data() + end - sizeof(valid), &valid, sizeof(valid));
        const Be32 sequence{awaited.sequence};
        std::memcpy(caller_.answers().data() + end - sizeof(RawTrailer), &sequence, sizeof(sequence));
    }
    // Looks for answers. Returns false once the server has broken a rule.
    bool look() {
        for (Caller::Slot& slot : caller_.slots()) {
            const auto bit = static_cast<std::uint32_t>(&slot - caller_.slots().data());
            Answer answer;
            if ((caller_.busy() >> bit & 1U) == 0) {
                continue;
            }
            const Look look = read_answer(caller_.answer_block(slot.sequence), slot.sequence, answer);
            if (look == Look::Absent) {
                continue;
            }
            if (look == Look::Nonsense || caller_.on_answered(slot.sequence, answer.news)) {
                return false;
            }
            sum_ += read_all(answer.payload);
            caller_.free(slot);
        }
        bool nonsense = false;
        const std::optional<News> news = caller_.look_at_control(nonsense);
        if (nonsense || (news && !caller_.on_news(*news))) {
            return false;
        }
        const Caller::Span staged = caller_.to_write();
        CAIRN_ASSERT(staged.to - staged.from <= kShape.blocks);
        for (std::uint32_t sequence = staged.from; sequence != staged.to; ++sequence) {
            caller_.ready(sequence);
        }
        caller_.written(staged.to);
        return true;
    }

private:
    std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(Caller::memory_for(kShape));
    Caller caller_{kShape, memory_};
    std::uint64_t sum_ = 0;
};

void read_as_server(test::Input& input) {
    std::array<std::uint8_t, kShape.bytes> block{};
    for (std::uint8_t& octet : block) {
        octet = input.byte();
    }
    const std::uint32_t epoch = input.byte();
    const std::uint32_t sequence = input.byte();
    const Be32 valid{valid_word(epoch, sequence)};
    std::memcpy(block.data() + block.size() - sizeof(valid), &valid, sizeof(valid));
    Request request;
    if (read_request(block, epoch, sequence, request) == Look::There) {
        (void)read_all(request.payload);
    }
    const Entry entry = Entry::parse(block.data());
    if (entry.is_sound(kShape, 0x1000, sequence)) {
        CAIRN_ASSERT(entry.count <= kShape.blocks && entry.longest <= kShape.bytes);
        CAIRN_ASSERT(entry.address + kShape.bytes <= 0x1000 + kShape.session_bytes());
    }
    (void)Hello::parse(block);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    Client client;
    while (!input.empty()) {
        const std::uint8_t step = input.byte();
        switch (step % 5) {
            case 0:
                client.stage();
                break;
            case 1:
                client.write(input.byte() * 4U + step / 5U, input.byte());
                break;
            case 2:
                client.make_valid(input.byte());
                break;
            case 3:
                if (!client.look()) {
                    return 0;
                }
                break;
            default:
                read_as_server(input);
                break;
        }
    }
    return 0;
}
