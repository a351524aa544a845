// The requests of the two sides of the world to each other, and the required effect of each.
#include <algorithm>
#include <cstring>

#include "lib/sim/rc/rc_world.hpp"

namespace cairn::sim {

namespace {

using roce::WorkOpcode;
using WindowState = WindowOfNode::State;

constexpr std::size_t kMostWaiting = 4;  // send requests of a side; the last of them is signalled

bool is_write(WorkOpcode opcode) {
    return opcode == WorkOpcode::RdmaWrite || opcode == WorkOpcode::RdmaWriteWithImmediate;
}
bool is_send(WorkOpcode opcode) {
    return opcode == WorkOpcode::Send || opcode == WorkOpcode::SendWithImmediate ||
           opcode == WorkOpcode::SendWithInvalidate;
}
bool is_word(WorkOpcode opcode) {
    return roce::is_atomic(opcode) || opcode == WorkOpcode::AtomicWrite;
}
const Inbox& inbox_named(const RcNode& to, const roce::SendRequest& request) {
    return *std::find_if(to.inboxes.begin(), to.inboxes.end(),
                         [&](const Inbox& inbox) { return inbox.srqn == request.remote_srqn; });
}

}  // namespace

void RcWorld::post_some(RcNode& from, RcNode& to) {
    while (from.to_post > 0 && random_.chance(600'000)) {
        // Landing places are used in turn, and again only after their contents were checked; regions are few.
        const bool full = is_reliable() && to.expected_receives.size() >= 30;
        if (broken_ || restart_wanted_ || from.expected_sends.size() >= kMostWaiting || full) {
            return;
        }
        post_one(from, to);
    }
}

WorkOpcode RcWorld::choose_opcode() {
    const auto any = static_cast<WorkOpcode>(random_.below(static_cast<std::uint64_t>(WorkOpcode::Count)));
    const bool lacks = is_xrc() ? any == WorkOpcode::Flush || any == WorkOpcode::AtomicWrite
                                : !is_reliable() && !roce::is_unreliable(any);
    return lacks ? WorkOpcode::Send : any;
}

bool RcWorld::is_signalled(const RcNode& from) {
    return from.to_post == 1 || from.expected_sends.size() == kMostWaiting - 1 || random_.chance(700'000);
}

// Binds a window for the peer to use, or frees it before the peer hears of it.
void RcWorld::post_local(RcNode& from, WorkOpcode opcode) {
    const bool binds = opcode == WorkOpcode::BindWindow;
    if (from.window.state != (binds ? WindowState::Free : WindowState::Binding)) {
        return;
    }
    roce::SendRequest request;
    request.opcode = opcode;
    request.wr_id = from.next_wr_id;
    request.fence = random_.chance(200'000);
    request.signalled = is_signalled(from);
    const Rkey key = binds ? Rkey{(from.window.key.value & ~0xffU) | static_cast<std::uint32_t>(random_.below(256))}
                           : from.window.key;
    const bool zero_based = random_.chance(kMillion / 2);
    request.bind = {key,       Lkey{from.key.value}, RcNode::kTarget, RcNode::kTargetBytes, roce::Right::RemoteWrite,
                    zero_based};
    request.invalidate = key;
    if (from.qp->post_send(request) != roce::PostVerdict::Posted) {
        return;
    }
    ++from.next_wr_id;
    --from.to_post;
    from.expected_sends.push_back({request.wr_id, request.signalled, opcode, RcNode::kSource, {}});
    from.window.key = key;
    from.window.zero_based = binds ? zero_based : from.window.zero_based;
    from.window.state = binds ? WindowState::Binding : WindowState::Ending;
}

roce::SendRequest RcWorld::begin_request(RcNode& from, RcNode& to, WorkOpcode opcode) {
    roce::SendRequest request;
    request.opcode = opcode;
    request.wr_id = from.next_wr_id;
    request.signalled = is_signalled(from);
    request.fence = random_.chance(200'000);
    request.solicited = random_.chance(300'000);
    request.immediate = static_cast<std::uint32_t>(random_.next());
    const Inbox& inbox = to.inboxes[random_.below(to.inboxes.size())];
    request.rkey = inbox.key;
    request.remote_srqn = inbox.srqn;
    return request;
}

void RcWorld::post_one(RcNode& from, RcNode& to) {
    const WorkOpcode opcode = choose_opcode();
    if (roce::is_local(opcode)) {
        post_local(from, opcode);
        return;
    }
    roce::SendRequest request = begin_request(from, to, opcode);
    const bool brings = roce::is_read_or_atomic(opcode);
    std::uint32_t bytes =
        static_cast<std::uint32_t>(random_.chance(200'000) ? random_.below(9) : random_.below(RcNode::kMaxBytes + 1));
    bytes = is_word(opcode) ? roce::kAtomicBytes : opcode == WorkOpcode::Flush ? 0 : bytes;
    ExpectedSend sent{request.wr_id, request.signalled, opcode, 0, {}};
    sent.landing = RcNode::kSource + random_.below(RcNode::kSourceBytes - bytes + 1);
    if (brings) {
        from.landing_used = from.landing_used + bytes > RcNode::kLandingBytes ? 0 : from.landing_used;
        sent.landing = RcNode::kLanding + from.landing_used;
    }
    const std::uint32_t split = is_word(opcode) ? bytes : static_cast<std::uint32_t>(random_.below(bytes + 1));
    const std::array<roce::Sge, 2> sges{from.sge(sent.landing, split), from.sge(sent.landing + split, bytes - split)};
    request.sges = std::span(sges).first(is_word(opcode) ? 1 : 2);
    const std::vector<std::uint8_t> payload = from.bytes_at(sent.landing, bytes);
    if (!brings && opcode != WorkOpcode::Flush && bytes <= 64 && random_.chance(500'000)) {
        request.is_inline = true;
        request.sges = {};
        request.inline_bytes = payload;
    }
    choose_remote(to, request, bytes, sent);
    if (from.qp->post_send(request) != roce::PostVerdict::Posted) {
        (void)to.memory.destroy_region(request.invalidate);
        return;
    }
    ++from.next_wr_id;
    --from.to_post;
    from.landing_used += brings ? (bytes + 7) & ~7U : 0;
    from.expected_sends.push_back(std::move(sent));
    apply_to_model(to, request, payload);
    expect_receive(to, request, payload);
}

// Chooses remote memory whose contents have one right answer: READs of memory that never changes, and atomics on words
// that only this side changes.
void RcWorld::choose_remote(RcNode& to, roce::SendRequest& request, std::uint32_t bytes, ExpectedSend& sent) {
    const Inbox& inbox = inbox_named(to, request);
    const bool by_window = is_reliable() && to.window.state == WindowState::Bound && random_.chance(kMillion / 2);
    if (is_write(request.opcode)) {
        request.remote_address = RcNode::kTarget + random_.below(RcNode::kTargetBytes - bytes + 1);
        request.rkey = by_window ? to.window.key : request.rkey;
        request.remote_address -= by_window && to.window.zero_based ? RcNode::kTarget : 0;
    } else if (request.opcode == WorkOpcode::SendWithInvalidate) {
        request.invalidate =
            by_window ? to.window.key
                      : to.memory.register_region({inbox.pd, to.span(), 0, roce::Right::RemoteInvalidate}).value();
    } else if (request.opcode == WorkOpcode::RdmaRead) {
        request.remote_address = RcNode::kSource + random_.below(RcNode::kSourceBytes - bytes + 1);
        sent.answer = to.bytes_at(request.remote_address, bytes);
    } else if (is_word(request.opcode)) {
        const std::uint64_t index = random_.below(RcNode::kWordCount);
        const std::uint64_t word = to.shadow_words[index];
        request.remote_address = RcNode::kWords + index * roce::kAtomicBytes;
        request.compare = random_.chance(500'000) ? word : word + 1;
        request.swap_or_add = random_.next();
        if (roce::is_atomic(request.opcode)) {
            sent.answer.resize(roce::kAtomicBytes);
            std::memcpy(sent.answer.data(), &word, sizeof(word));
        }
    } else if (request.opcode == WorkOpcode::Flush) {
        request.remote_address = RcNode::kTarget;
        request.flush = {false, true, false, static_cast<std::uint32_t>(random_.between(1, RcNode::kTargetBytes))};
    }
}

void RcWorld::apply_to_model(RcNode& to, const roce::SendRequest& request, std::span<const std::uint8_t> payload) {
    if (is_word(request.opcode)) {
        std::uint64_t& word = to.shadow_words[(request.remote_address - RcNode::kWords) / roce::kAtomicBytes];
        if (request.opcode == WorkOpcode::AtomicWrite) {
            std::memcpy(&word, payload.data(), sizeof(word));
        } else {
            const bool adds = request.opcode == WorkOpcode::FetchAdd;
            word = adds ? word + request.swap_or_add : word == request.compare ? request.swap_or_add : word;
        }
    } else if (is_write(request.opcode)) {
        const bool from_zero = request.rkey == to.window.key && to.window.zero_based;
        const std::uint64_t offset = request.remote_address - (from_zero ? 0 : RcNode::kTarget);
        std::copy(payload.begin(), payload.end(), to.shadow_target.begin() + static_cast<std::ptrdiff_t>(offset));
    } else if (request.opcode == WorkOpcode::Flush) {
        ++to.flushes_wanted;
    } else if (request.opcode == WorkOpcode::SendWithInvalidate) {
        if (request.invalidate == to.window.key) {
            to.window.state = WindowState::Ending;
        } else {
            to.to_be_invalidated.push_back(request.invalidate);
        }
    }
}

void RcWorld::expect_receive(RcNode& to, const roce::SendRequest& request, std::span<const std::uint8_t> payload) {
    if (!is_send(request.opcode) && request.opcode != WorkOpcode::RdmaWriteWithImmediate) {
        return;
    }
    ExpectedReceive expected;
    expected.inbox = static_cast<std::size_t>(&inbox_named(to, request) - to.inboxes.data());
    expected.opcode =
        is_send(request.opcode) ? roce::CompletionOpcode::Receive : roce::CompletionOpcode::ReceiveRdmaWithImmediate;
    expected.bytes = static_cast<std::uint32_t>(payload.size());
    expected.solicited = request.solicited;
    if (is_send(request.opcode)) {
        expected.payload.assign(payload.begin(), payload.end());
    }
    if (request.opcode == WorkOpcode::SendWithInvalidate) {
        expected.invalidated = request.invalidate;
    } else if (request.opcode != WorkOpcode::Send) {
        expected.immediate = request.immediate;
    }
    to.expected_receives.push_back(std::move(expected));
}

void RcWorld::post_receives(RcNode& side) {
    if (!healed_ && random_.chance(faults_.lazy_receiver_per_million)) {
        return;
    }
    while (!side.free_receives.empty() && side.qp->state() == roce::QpState::Rts) {
        const std::uint64_t slot = side.free_receives.front();
        side.free_receives.pop_front();
        Inbox& inbox = side.inbox_of(slot);
        inbox.posted.push_back(slot);
        // The request has two pieces, split anywhere.
        const auto split = static_cast<std::uint32_t>(random_.below(RcNode::kMaxBytes + 1));
        const std::uint64_t at = RcNode::kReceives + slot * RcNode::kMaxBytes;
        const Lkey lkey{inbox.key.value};
        const std::array<roce::Sge, 2> sges{roce::Sge{at, split, lkey},
                                            roce::Sge{at + split, RcNode::kMaxBytes - split, lkey}};
        const roce::ReceiveRequest request{slot, sges};
        const roce::PostVerdict verdict =
            inbox.queue != nullptr ? inbox.queue->post(request) : side.qp->post_receive(request);
        expect(verdict == roce::PostVerdict::Posted, "a receive request was refused");
    }
}

// Returns whether the side's CPU is taken away: packets and due work wait.
bool RcWorld::is_away(RcNode& side) {
    if (now_ >= side.paused_until && !healed_ && random_.chance(faults_.pause_per_million)) {
        side.paused_until = now_ + random_.between(milliseconds(1), milliseconds(3));
        ++counters_.pauses;
    }
    return now_ < side.paused_until;
}

}  // namespace cairn::sim
