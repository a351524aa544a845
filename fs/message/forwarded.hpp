// A client's call that a shard of its daemon, the gateway, forwards to a shard of another process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fs/message/peers.hpp"
#include "fs/message/requests.hpp"

namespace cairn::fs {

// Data up to this length travel inside the messages. Longer data are read and written directly in the client's memory.
constexpr std::uint32_t kMostInlineBytes = 8192;
constexpr std::uint32_t kMostForwardedData = 1U << 20U;
constexpr std::uint32_t kMostForwardedBytes = 15U << 10U;  // of a message, and of its answer

struct ForwardedCall {
    std::uint64_t client = 0;
    std::uint32_t slot = 0;
    Who who{};
    std::uint64_t address = 0;  // of data that are not inline
    std::uint32_t key = 0;
    std::string_view request{};  // data offsets in it begin at 0
    std::string_view data{};     // for a write with inline data
    static void fields(auto& io, auto& self) {
        io(self.client, self.slot);
        Who::fields(io, self.who);
        io(self.address, self.key, self.request, self.data);
    }
};

enum class DataWay : std::uint8_t { None, Brings, Takes };  // whether the request has data for the shard or from it

// The data that a request names.
struct NamedData {
    DataWay way = DataWay::None;
    std::uint32_t bytes = 0;
    std::uint32_t at = 0;

    [[nodiscard]] bool is_inline() const noexcept { return bytes <= kMostInlineBytes; }
};
[[nodiscard]] NamedData data_of(const Request& request) noexcept;
// Makes the request's data begin at offset 0.
void move_data(Request& request) noexcept;

struct ParsedForward {
    ForwardedCall call{};  // its texts refer to the bytes
    NamedData data{};
};

// Writes the message. Returns its length, or 0 if it does not fit.
[[nodiscard]] std::uint32_t put_forwarded(std::span<std::uint8_t> room, const ForwardedCall& call);
// Parses a message. Returns nothing if these bytes are no call that an honest gateway forwards.
[[nodiscard]] std::optional<ParsedForward> parse_forwarded(std::span<const std::uint8_t> bytes);

struct ForwardedAnswer {
    std::string_view answer{};
    std::string_view data{};  // for a read with inline data
    static void fields(auto& io, auto& self) { io(self.answer, self.data); }
};

[[nodiscard]] std::uint32_t put_forwarded_answer(std::span<std::uint8_t> room, const ForwardedAnswer& answer);
// Parses an answer. Returns nothing if these bytes are no answer to a call with these data.
[[nodiscard]] std::optional<ForwardedAnswer> parse_forwarded_answer(std::span<const std::uint8_t> bytes,
                                                                    const NamedData& data);

[[nodiscard]] inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace cairn::fs
