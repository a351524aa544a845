// A client's call that its own daemon's shard, the gateway, hands on to the shard that it is for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fs/message/peers.hpp"
#include "fs/message/requests.hpp"

namespace cairn::fs {

// Data up to this travel inside the messages. More are read and written where they lie at the gateway.
constexpr std::uint32_t kMostInlineBytes = 8192;
constexpr std::uint32_t kMostForwardedData = 1U << 20U;
constexpr std::uint32_t kMostForwardedBytes = 15U << 10U;  // of such a message, and of its answer

struct ForwardedCall {
    std::uint64_t client = 0;
    std::uint32_t slot = 0;
    Who who{};
    std::uint64_t address = 0;  // where data that are not inline lie
    std::uint32_t key = 0;
    std::string_view request{};  // names data from 0 on
    std::string_view data{};     // of a write, if they are inline
    static void fields(auto& io, auto& self) {
        io(self.client, self.slot);
        Who::fields(io, self.who);
        io(self.address, self.key, self.request, self.data);
    }
};

enum class DataWay : std::uint8_t { None, Brings, Takes };  // by the request

// Which data a request names.
struct NamedData {
    DataWay way = DataWay::None;
    std::uint32_t bytes = 0;
    std::uint32_t at = 0;

    [[nodiscard]] bool is_inline() const noexcept { return bytes <= kMostInlineBytes; }
};
[[nodiscard]] NamedData data_of(const Request& request) noexcept;
// The request names data from 0 on.
void move_data(Request& request) noexcept;

struct ParsedForward {
    ForwardedCall call{};  // texts lie in the bytes
    NamedData data{};
};

// Returns how long the message is; 0 if it does not fit.
[[nodiscard]] std::uint32_t put_forwarded(std::span<std::uint8_t> room, const ForwardedCall& call);
// Returns nothing if these bytes are no call that an honest gateway forwards.
[[nodiscard]] std::optional<ParsedForward> parse_forwarded(std::span<const std::uint8_t> bytes);

struct ForwardedAnswer {
    std::string_view answer{};
    std::string_view data{};  // of a read, if they are inline
    static void fields(auto& io, auto& self) { io(self.answer, self.data); }
};

[[nodiscard]] std::uint32_t put_forwarded_answer(std::span<std::uint8_t> room, const ForwardedAnswer& answer);
// Returns nothing if these bytes are no answer to a call that has these data.
[[nodiscard]] std::optional<ForwardedAnswer> parse_forwarded_answer(std::span<const std::uint8_t> bytes,
                                                                    const NamedData& data);

[[nodiscard]] inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace cairn::fs
