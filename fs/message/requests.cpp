#include "fs/message/requests.hpp"

#include <array>

#include "fs/message/variants.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kOperations = std::variant_size_v<Request>;

constexpr std::array<std::string_view, kOperations> kNames{
    "walk",   "create", "stat",   "open", "close",    "read",   "write", "extend", "reserve", "setattr",
    "remove", "list",   "rename", "link", "readlink", "statfs", "sync",  "census", "scrub"};

}  // namespace

std::uint32_t put_request(std::span<std::uint8_t> room, RequestHead head, const Request& request) {
    FieldWriter out(room);
    head.operation = static_cast<std::uint8_t>(request.index());
    RequestHead::fields(out, head);
    write_alternative(out, request);
    return out.failed() ? 0 : out.bytes();
}

std::optional<ParsedRequest> parse_request(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    std::optional<ParsedRequest> parsed(std::in_place);
    RequestHead::fields(in, parsed->head);
    if (in.failed() || parsed->head.version != RequestHead::kVersion ||
        !read_alternative(in, parsed->head.operation, parsed->request)) {
        return std::nullopt;
    }
    return parsed;
}

std::string_view name_of(const Request& request) noexcept {
    return kNames[request.index()];
}

}  // namespace cairn::fs
