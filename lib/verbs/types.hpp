// The names that users of the verbs need: the engine's work requests, completions and attributes.
#pragma once

#include <cstdint>
#include <span>

#include "lib/roce/rc/queue_pair.hpp"

namespace cairn::verbs {

using roce::Attribute;
using roce::AttributeSet;
using roce::Completion;
using roce::CompletionOpcode;
using roce::CompletionStatus;
using roce::kGrhBytes;
using roce::ModifyRefusal;
using roce::PostVerdict;
using roce::QpAttributes;
using roce::QpCapacity;
using roce::QpEvent;
using roce::QpKind;
using roce::QpState;
using roce::ReceiveRequest;
using roce::Right;
using roce::Rights;
using roce::SendRequest;
using roce::Sge;
using roce::WindowType;
using roce::WorkOpcode;
using wire::Service;  // for QpCapacity
using Arm = roce::CompletionQueue::Arm;

// The limits of one device; see Device::limits().
struct Limits {
    std::uint32_t queue_pairs = 0;
    std::uint32_t regions = 0;           // including windows
    std::uint32_t queue_slots = 0;       // of a send, receive or shared receive queue
    std::uint32_t completion_slots = 0;  // of a completion queue
    std::uint32_t sges = 0;              // of a work request
    std::uint32_t inline_bytes = 0;
    std::uint32_t message_bytes = 0;
    std::uint32_t rd_atomic = 0;       // READs and atomics outstanding, in each direction
    std::uint32_t path_mtu_bytes = 0;  // the largest that the port carries
};

// The result of a burst of posts: the number taken, and Posted or the reason why the next one was not taken.
struct PostResult {
    std::size_t posted = 0;
    PostVerdict verdict = PostVerdict::Posted;
};

// Posts requests in their order, up to the first one refused.
template <class Request, class Post>
PostResult post_burst(std::span<const Request> requests, Post&& post) noexcept {
    PostResult result;
    for (const Request& request : requests) {
        result.verdict = post(request);
        if (result.verdict != PostVerdict::Posted) {
            break;
        }
        ++result.posted;
    }
    return result;
}

}  // namespace cairn::verbs
