// A call that outlives take(): it waits for something, or is made step by step.
#pragma once

#include <vector>

#include "fs/message/requests.hpp"
#include "fs/shard/calls.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

class KeptCall {
public:
    explicit KeptCall(const Call& call)
        : call_(call),
          groups_(call.who.groups.begin(), call.who.groups.end()),
          bytes_(call.request.begin(), call.request.end()) {}

    // Returns a call that refers to this object.
    [[nodiscard]] Call call() const noexcept {
        Call call = call_;
        call.who.groups = groups_;
        call.request = bytes_;
        return call;
    }
    // Returns the request, which is of this kind (asserted). Its texts refer to this object.
    template <class Request>
    [[nodiscard]] Request request() const {
        const std::optional<ParsedRequest> parsed = parse_request(bytes_);
        CAIRN_ASSERT(parsed && std::holds_alternative<Request>(parsed->request));
        return std::get<Request>(parsed->request);
    }
    [[nodiscard]] std::uint32_t sequence() const { return parse_request(bytes_)->head.sequence; }

private:
    Call call_;
    std::vector<std::uint32_t> groups_;
    std::vector<std::uint8_t> bytes_;
};

}  // namespace cairn::fs
