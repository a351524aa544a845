// What the two sides of the world ask of each other, and what each request must do.
#include <algorithm>

#include "tests/unit/rc/rc_world.hpp"

namespace cairn::roce::rc {

namespace {

constexpr std::size_t kMostWaiting = 4;  // send requests of a side; the last of them is signalled

CompletionOpcode completion_opcode(WorkOpcode opcode) {
    switch (opcode) {
        case WorkOpcode::RdmaWrite:
        case WorkOpcode::RdmaWriteWithImmediate:
            return CompletionOpcode::RdmaWrite;
        case WorkOpcode::RdmaRead:
            return CompletionOpcode::RdmaRead;
        case WorkOpcode::CompareSwap:
            return CompletionOpcode::CompareSwap;
        case WorkOpcode::FetchAdd:
            return CompletionOpcode::FetchAdd;
        case WorkOpcode::BindWindow:
            return CompletionOpcode::BindWindow;
        case WorkOpcode::LocalInvalidate:
            return CompletionOpcode::LocalInvalidate;
        case WorkOpcode::AtomicWrite:
            return CompletionOpcode::AtomicWrite;
        case WorkOpcode::Flush:
            return CompletionOpcode::Flush;
        case WorkOpcode::Send:
        case WorkOpcode::SendWithImmediate:
        case WorkOpcode::SendWithInvalidate:
        case WorkOpcode::Count:
            break;
    }
    return CompletionOpcode::Send;
}

}  // namespace

void RcWorld::post_some(RcSide& from, RcSide& to) {
    while (from.to_post > 0 && random_.chance(600'000)) {
        // Landing places are used in turn and not again before what is there was checked; regions are few.
        if (from.expected_sends.size() >= kMostWaiting || to.expected_receives.size() >= 30) {
            return;
        }
        post_one(from, to);
    }
}

SendRequest RcWorld::begin_request(RcSide& from, RcSide& to) {
    SendRequest request;
    request.opcode = static_cast<WorkOpcode>(random_.below(static_cast<std::uint64_t>(WorkOpcode::BindWindow)));
    request.wr_id = from.next_wr_id;
    request.signalled = from.to_post == 1 || from.expected_sends.size() == kMostWaiting - 1 || random_.chance(700'000);
    request.fence = random_.chance(200'000);
    request.solicited = random_.chance(300'000);
    request.immediate = static_cast<std::uint32_t>(random_.next());
    request.rkey = to.host.key;
    return request;
}

void RcWorld::post_one(RcSide& from, RcSide& to) {
    SendRequest request = begin_request(from, to);
    const bool brings = is_read_or_atomic(request.opcode);
    std::uint32_t bytes =
        static_cast<std::uint32_t>(random_.chance(200'000) ? random_.below(9) : random_.below(RcSide::kMaxBytes + 1));
    bytes = is_atomic(request.opcode) ? kAtomicBytes : bytes;
    ExpectedSend sent{request.wr_id, request.signalled, completion_opcode(request.opcode), 0, {}};
    sent.landing = RcSide::kSource + random_.below(RcSide::kSourceBytes - bytes + 1);
    if (brings) {
        from.landing_used = from.landing_used + bytes > RcSide::kLandingBytes ? 0 : from.landing_used;
        sent.landing = RcSide::kLanding + from.landing_used;
    }
    const std::uint32_t split =
        is_atomic(request.opcode) ? bytes : static_cast<std::uint32_t>(random_.below(bytes + 1));
    const std::array<Sge, 2> sges{from.host.sge(sent.landing, split),
                                  from.host.sge(sent.landing + split, bytes - split)};
    request.sges = std::span(sges).first(is_atomic(request.opcode) ? 1 : 2);
    const std::uint8_t* at = from.host.at(sent.landing);
    const std::vector<std::uint8_t> payload(at, at + bytes);
    if (!brings && bytes <= 64 && random_.chance(500'000)) {
        request.is_inline = true;
        request.sges = {};
        request.inline_bytes = payload;
    }
    choose_remote(to, request, bytes, sent);
    const PostVerdict verdict = from.host.qp->post_send(request);
    if (verdict == PostVerdict::QueueFull) {
        (void)to.host.memory.destroy_region(request.invalidate);
        return;
    }
    ASSERT_EQ(verdict, PostVerdict::Posted);
    ++from.next_wr_id;
    --from.to_post;
    from.landing_used += brings ? (bytes + 7) & ~7U : 0;
    from.expected_sends.push_back(std::move(sent));
    apply_to_model(to, request, payload);
    expect_receive(to, request, payload);
}

// READs of what never changes, atomics on words that only this side changes: both have one right answer.
void RcWorld::choose_remote(RcSide& to, SendRequest& request, std::uint32_t bytes, ExpectedSend& sent) {
    if (sent.opcode == CompletionOpcode::RdmaWrite) {
        request.remote_address = RcSide::kTarget + random_.below(RcSide::kTargetBytes - bytes + 1);
    } else if (request.opcode == WorkOpcode::SendWithInvalidate) {
        request.invalidate =
            to.host.memory.register_region({to.host.pd, to.host.span(), 0, Right::RemoteInvalidate}).value();
    } else if (request.opcode == WorkOpcode::RdmaRead) {
        request.remote_address = RcSide::kSource + random_.below(RcSide::kSourceBytes - bytes + 1);
        const std::uint8_t* at = to.host.at(request.remote_address);
        sent.answer.assign(at, at + bytes);
    } else if (is_atomic(request.opcode)) {
        const std::uint64_t index = random_.below(RcSide::kWordCount);
        const std::uint64_t word = to.shadow_words[index];
        request.remote_address = RcSide::kWords + index * kAtomicBytes;
        request.compare = random_.chance(500'000) ? word : word + 1;
        request.swap_or_add = random_.next();
        sent.answer.resize(kAtomicBytes);
        std::memcpy(sent.answer.data(), &word, sizeof(word));
    }
}

void RcWorld::apply_to_model(RcSide& to, const SendRequest& request, std::span<const std::uint8_t> payload) {
    if (is_atomic(request.opcode)) {
        std::uint64_t& word = to.shadow_words[(request.remote_address - RcSide::kWords) / kAtomicBytes];
        const bool adds = request.opcode == WorkOpcode::FetchAdd;
        word = adds ? word + request.swap_or_add : word == request.compare ? request.swap_or_add : word;
    } else if (completion_opcode(request.opcode) == CompletionOpcode::RdmaWrite) {
        const std::uint64_t offset = request.remote_address - RcSide::kTarget;
        std::copy(payload.begin(), payload.end(), to.shadow_target.begin() + static_cast<std::ptrdiff_t>(offset));
    }
}

void RcWorld::expect_receive(RcSide& to, const SendRequest& request, std::span<const std::uint8_t> payload) {
    const bool is_send = completion_opcode(request.opcode) == CompletionOpcode::Send;
    if (!is_send && request.opcode != WorkOpcode::RdmaWriteWithImmediate) {
        return;
    }
    ExpectedReceive expected;
    expected.opcode = is_send ? CompletionOpcode::Receive : CompletionOpcode::ReceiveRdmaWithImmediate;
    expected.bytes = static_cast<std::uint32_t>(payload.size());
    expected.solicited = request.solicited;
    if (is_send) {
        expected.payload.assign(payload.begin(), payload.end());
    }
    if (request.opcode == WorkOpcode::SendWithInvalidate) {
        expected.invalidated = request.invalidate;
    } else if (request.opcode != WorkOpcode::Send) {
        expected.immediate = request.immediate;
    }
    to.expected_receives.push_back(std::move(expected));
}

}  // namespace cairn::roce::rc
