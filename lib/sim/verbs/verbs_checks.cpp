// Checks of the results of the users' requests.
#include <algorithm>
#include <cstring>

#include "lib/sim/verbs/verbs_traffic.hpp"

namespace cairn::sim {

using verbs::CompletionStatus;
using verbs::QpState;
using verbs::WorkOpcode;

namespace {

verbs::CompletionOpcode completion_of(WorkOpcode opcode) {
    return opcode == WorkOpcode::RdmaRead      ? verbs::CompletionOpcode::RdmaRead
           : opcode == WorkOpcode::FetchAdd    ? verbs::CompletionOpcode::FetchAdd
           : opcode == WorkOpcode::CompareSwap ? verbs::CompletionOpcode::CompareSwap
           : is_write(opcode)                  ? verbs::CompletionOpcode::RdmaWrite
                                               : verbs::CompletionOpcode::Send;
}

}  // namespace

void VerbsTraffic::take_completions(VerbsHost& host) {
    for (const auto& queue : host.queues) {
        world_.check(!queue->overrun(), "a completion queue with room was overrun", &host.node);
        std::vector<verbs::Completion> all(queue->queue().size());
        all.resize(queue->poll(all));
        for (const verbs::Completion& got : all) {
            if (datagrams_.take(host, got)) {
                continue;
            }
            VerbsEnd* const end = host.find(got.qpn);
            world_.check(end != nullptr, "a completion of a queue pair that is gone", &host.node);
            if (world_.broken()) {
                return;
            }
            if ((got.wr_id & kReceiveBit) != 0) {
                on_received(*end, got);
            } else {
                on_sent(*end, got);
            }
        }
    }
}

// Returns the memory of the received message; nullptr if no request completes. An end's own requests complete in the
// order of posting, shared ones in any.
std::uint8_t* VerbsTraffic::take_cell(VerbsEnd& end, std::uint64_t wr_id) {
    VerbsHost& host = host_of(end);
    if (end.shared) {
        return host.take_shared(wr_id);
    }
    if (end.in.receives.empty() || end.in.receives.front() != wr_id) {
        return nullptr;
    }
    const std::uint64_t number = end.in.posted - end.in.receives.size();
    end.in.receives.pop_front();
    return host.slot_at(
        end, VerbsHost::kReceives + static_cast<std::uint32_t>(number % VerbsHost::kRequests) * VerbsHost::kMostBytes);
}

void VerbsTraffic::on_received(VerbsEnd& end, const verbs::Completion& got) {
    std::uint8_t* const cell = take_cell(end, got.wr_id);
    expect(cell != nullptr, "a receive request completed twice, out of order, or of an earlier life", end);
    if (cell == nullptr) {
        return;
    }
    if (got.status == CompletionStatus::Success) {
        on_message(end, got, cell);
    } else {
        expect(got.status == CompletionStatus::Flushed && end.qp->state() == QpState::Err,
               "a receive request failed for no reason", end);
    }
    std::memset(cell, VerbsHost::kUntouched, VerbsHost::kMostBytes);
}

// Requires that the message is the next one of its peer, once, whole, as it was sent.
void VerbsTraffic::on_message(VerbsEnd& end, const verbs::Completion& got, const std::uint8_t* cell) {
    VerbsEnd* const peer = ends_.find(end.peer);
    const bool sent = peer != nullptr && end.in.received < peer->out.messages.size();
    expect(sent, "received what nobody sent, or twice", end);
    if (!sent) {
        return;
    }
    const VerbsMessage& message = peer->out.messages[end.in.received++];
    ++counters_.messages;
    counters_.shared += end.shared ? 1U : 0U;
    expect(got.opcode == message.opcode && got.bytes == message.bytes && got.solicited == message.solicited &&
               got.has_immediate == message.immediate.has_value() &&
               (!message.immediate || got.immediate == *message.immediate),
           "a message is another one than its peer sent next", end);
    if (message.opcode == verbs::CompletionOpcode::Receive && !world_.broken()) {
        expect(std::memcmp(cell, host_of(*peer).at(VerbsHost::kBase + message.from), message.bytes) == 0,
               "a message has other bytes than were sent", end);
    }
    const std::uint32_t used = message.opcode == verbs::CompletionOpcode::Receive ? got.bytes : 0;
    expect(used == VerbsHost::kMostBytes || cell[used] == VerbsHost::kUntouched, "written behind the end of a message",
           end);
    expect(!got.has_invalidate && !got.has_grh, "a completion of another kind", end);
}

void VerbsTraffic::on_sent(VerbsEnd& end, const verbs::Completion& got) {
    std::deque<VerbsWork>& pending = end.out.pending;
    while (!pending.empty() && !pending.front().signalled && pending.front().wr_id != got.wr_id) {
        expect(!end.out.failed && !pending.front().doomed, "a request that failed made no completion", end);
        const VerbsWork done = pending.front();
        pending.pop_front();
        on_done(end, done);
        reuse_memory(end, done);
    }
    const bool next = !pending.empty() && pending.front().wr_id == got.wr_id;
    expect(next, "a send request completed twice, out of order, or of an earlier life", end);
    if (!next) {
        return;
    }
    const VerbsWork work = pending.front();
    pending.pop_front();
    if (got.status != CompletionStatus::Success) {
        on_failed(end, work, got.status);
    } else {
        expect(!end.out.failed && !work.doomed, "a send request succeeded behind one that failed", end);
        expect(work.signalled && got.opcode == completion_of(work.opcode), "a completion of another kind", end);
        on_done(end, work);
    }
    reuse_memory(end, work);
}

// Overwrites the memory of a completed request, as its user may do. The peer gets the bytes that were there before.
void VerbsTraffic::reuse_memory(VerbsEnd& end, const VerbsWork& work) {
    std::memset(landing_of(end, work), VerbsHost::kUntouched, work.bytes);
}

void VerbsTraffic::on_done(VerbsEnd& end, const VerbsWork& work) {
    VerbsEnd& peer = *ends_.find(end.peer);
    const std::uint8_t* const landing = landing_of(end, work);
    if (work.opcode == WorkOpcode::RdmaRead) {
        ++counters_.reads;
        expect(std::memcmp(landing, host_of(peer).at(VerbsHost::kBase + work.from), work.bytes) == 0,
               "a READ brought other bytes than are there", end);
    } else if (roce::is_atomic(work.opcode)) {
        ++counters_.atomics;
        expect(std::memcmp(landing, &work.original, sizeof(work.original)) == 0,
               "an atomic was executed twice, not at all, or out of order", end);
        peer.target.steps[work.word] = work.step + 1;
    } else if (work.opcode != WorkOpcode::RdmaWrite) {
        ++end.out.messages_done;
        expect(end.out.messages_done <= peer.in.received, "a message completed that its peer never got", end);
    }
    if (is_write(work.opcode) && has_slot(&peer)) {
        ++counters_.writes;
        const std::uint8_t* const bytes = host_of(end).at(VerbsHost::kBase + work.from);
        std::copy_n(bytes, work.bytes, peer.target.settled.begin() + work.to);
        expect(std::memcmp(bytes, host_of(peer).slot_at(peer, VerbsHost::kTarget + work.to), work.bytes) == 0,
               "a WRITE completed whose bytes are not there", end);
    }
}

void VerbsTraffic::on_failed(VerbsEnd& end, const VerbsWork& work, CompletionStatus status) {
    expect(end.qp->state() == QpState::Err, "a request failed, and its queue pair goes on", end);
    if (status == CompletionStatus::Flushed) {
        ++counters_.flushed;
    } else {
        const bool silent = status == CompletionStatus::RetryExceeded;
        expect(silent || status == CompletionStatus::RnrRetryExceeded, "a request failed for no reason", end);
        expect(!end.out.failed && !work.doomed, "a queue pair fails once", end);
        ++(silent ? counters_.broken : counters_.not_ready);
    }
    end.out.failed = true;
    VerbsEnd& peer = *ends_.find(end.peer);
    if (is_write(work.opcode) && !work.doomed) {
        peer.target.unknown.push_back(work);
    }
}

void VerbsTraffic::check_word(VerbsEnd& end, std::size_t word) {
    std::uint64_t value = 0;
    std::memcpy(&value, host_of(end).slot_at(end, VerbsHost::kWords + static_cast<std::uint32_t>(word) * 8),
                sizeof(value));
    const std::vector<std::uint64_t>& values = end.target.values[word];
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(end.target.steps[word]);
    expect(std::find(first, values.end(), value) != values.end(), "a word that no order of its atomics explains", end);
}

void VerbsTraffic::check_target(VerbsEnd& end) {
    for (std::size_t word = 0; word < VerbsTarget::kWords; ++word) {
        check_word(end, word);
    }
    std::vector<VerbsWork> may_be = end.target.unknown;
    VerbsEnd* const peer = ends_.find(end.peer);
    if (peer != nullptr) {
        std::copy_if(peer->out.pending.begin(), peer->out.pending.end(), std::back_inserter(may_be),
                     [](const VerbsWork& work) { return is_write(work.opcode) && !work.doomed; });
    }
    const std::uint8_t* const target = host_of(end).slot_at(end, VerbsHost::kTarget);
    std::vector<std::uint8_t> seen(target, target + VerbsTarget::kBytes);
    for (const VerbsWork& work : may_be) {
        for (std::uint32_t i = 0; i < work.bytes && peer != nullptr; ++i) {
            std::uint8_t& octet = seen[work.to + i];
            const std::uint8_t made = *host_of(*peer).at(VerbsHost::kBase + work.from + i);
            octet = octet == made ? end.target.settled[work.to + i] : octet;
        }
    }
    expect(seen == end.target.settled, "memory that no WRITE of the peer explains", end);
}

void VerbsTraffic::check_over(VerbsEnd& end) {
    check_target(end);
    const auto loud = [&end](const VerbsWork& work) { return work.signalled || work.doomed || end.out.failed; };
    expect(std::none_of(end.out.pending.begin(), end.out.pending.end(), loud), "send requests without a completion",
           end);
    expect(end.in.receives.empty(), "receive requests without a completion", end);
    while (const std::optional<verbs::QpEvent> event = end.qp->poll_event()) {
        expect(*event == verbs::QpEvent::CommunicationEstablished || *event == verbs::QpEvent::SendQueueDrained ||
                   *event == verbs::QpEvent::LastWqeReached,
               "an event that nothing explains", end);
    }
}

}  // namespace cairn::sim
