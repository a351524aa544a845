// Why the engine drops a datagram: one list of reason, counter name and what a non-zero value tells
// the operator. Dropping is counted, never logged per packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::roce {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_ROCE_DROPS(X)                                                                             \
    X(BadIcrc, "roce_bad_icrc", "packets damaged on the way, or a peer that computes the ICRC wrongly") \
    X(TooShort, "roce_too_short", "packets that end inside their headers: a broken or hostile sender")  \
    X(BadVersion, "roce_bad_version", "packets of another transport header version")                    \
    X(BadOpcode, "roce_bad_opcode", "opcodes that a datagram queue pair does not take")                 \
    X(UnknownQpn, "roce_unknown_qpn", "packets for a queue pair that does not exist (any more)")        \
    X(BadPkey, "roce_bad_pkey", "peers of another partition: compare the P_Keys of both ends")          \
    X(BadQkey, "roce_bad_qkey", "peers that do not know this queue pair's Q_Key")                       \
    X(BadLength, "roce_bad_length", "payload longer than the path MTU, or a pad that does not fit")     \
    X(TxQueueFull, "roce_tx_queue_full", "the port takes packets more slowly than the application makes them")

enum class Drop : std::uint8_t {
#define CAIRN_X(name, counter, text) name,
    CAIRN_ROCE_DROPS(CAIRN_X)
#undef CAIRN_X
        Count,
};

constexpr std::size_t kDropReasons = static_cast<std::size_t>(Drop::Count);

struct DropText {
    std::string_view counter;
    std::string_view meaning;
};

constexpr std::array<DropText, kDropReasons> kDropTexts{{
#define CAIRN_X(name, counter, text) {counter, text},
    CAIRN_ROCE_DROPS(CAIRN_X)
#undef CAIRN_X
}};

class DropCounters {
public:
    void count(Drop reason) noexcept { ++counts_[static_cast<std::size_t>(reason)]; }
    [[nodiscard]] std::uint64_t of(Drop reason) const noexcept { return counts_[static_cast<std::size_t>(reason)]; }
    [[nodiscard]] std::uint64_t total() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t value : counts_) {
            sum += value;
        }
        return sum;
    }

private:
    std::array<std::uint64_t, kDropReasons> counts_{};
};

}  // namespace cairn::roce
