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

// Order is the format: new ones come behind the last.
using Request =
    std::variant<WalkRequest, CreateRequest, StatRequest, OpenRequest, CloseRequest, ReadRequest, WriteRequest,
                 ExtendRequest, ReserveRequest, SetAttributesRequest, RemoveRequest, ListRequest, RenameRequest,
                 LinkRequest, ReadLinkRequest, StatFsRequest, SyncRequest, CensusRequest, ScrubRequest>;

// Of all requests.
struct RequestHead {
    std::uint8_t operation = 0;  // place in Request
    std::uint8_t version = kVersion;
    std::uint16_t shard = 0;     // who is to answer
    std::uint32_t sequence = 0;  // of the slot; a retry has the same one
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

// Returns how long the request is; 0 if it does not fit. The head's operation is set here.
[[nodiscard]] std::uint32_t put_request(std::span<std::uint8_t> room, RequestHead head, const Request& request);
// Returns nothing if these bytes are no request of this version, or not only that. Texts lie in the bytes.
[[nodiscard]] std::optional<ParsedRequest> parse_request(std::span<const std::uint8_t> bytes);

// A short name, for counters: "walk".
[[nodiscard]] std::string_view name_of(const Request& request) noexcept;

}  // namespace cairn::fs
