// Requests as bytes. See README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "fs/message/census.hpp"
#include "fs/message/request_kinds.hpp"

namespace cairn::fs {

// The order is the format: new kinds are added at the end.
using Request =
    std::variant<WalkRequest, CreateRequest, StatRequest, OpenRequest, CloseRequest, ReadRequest, WriteRequest,
                 ExtendRequest, ReserveRequest, SetAttributesRequest, RemoveRequest, ListRequest, RenameRequest,
                 LinkRequest, ReadLinkRequest, StatFsRequest, SyncRequest, CensusRequest, ScrubRequest>;

// The head of each request.
struct RequestHead {
    std::uint8_t operation = 0;  // place in Request
    std::uint8_t version = kVersion;
    std::uint16_t shard = 0;     // the shard that is to answer
    std::uint32_t sequence = 0;  // the slot's; a retry has the same one
    std::uint32_t table = 0;     // lower half of the epoch of the client's slot table

    static constexpr std::uint8_t kVersion = 1;
    static void fields(auto& io, auto& self) {
        io(self.operation, self.version, self.shard, self.sequence, self.table);
    }
};

struct ParsedRequest {
    RequestHead head{};
    Request request{};
};

// Writes a request, and sets the head's operation. Returns the length, or 0 if it does not fit.
[[nodiscard]] std::uint32_t put_request(std::span<std::uint8_t> room, RequestHead head, const Request& request);
// Parses a request. Returns nothing if these bytes are not exactly one request of this version. Texts refer to the
// bytes.
[[nodiscard]] std::optional<ParsedRequest> parse_request(std::span<const std::uint8_t> bytes);

// Returns a short name for counters, such as "walk".
[[nodiscard]] std::string_view name_of(const Request& request) noexcept;

}  // namespace cairn::fs
