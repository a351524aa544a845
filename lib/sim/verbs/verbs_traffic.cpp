// The requests that users post.
#include "lib/sim/verbs/verbs_traffic.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::sim {

using verbs::PostVerdict;
using verbs::QpState;
using verbs::WorkOpcode;

namespace {

constexpr std::uint32_t kInlineBytes = 64;

// The opcodes to draw from. Each is drawn as often as it stands here.
constexpr std::array kOpcodes{WorkOpcode::Send,      WorkOpcode::Send,      WorkOpcode::SendWithImmediate,
                              WorkOpcode::RdmaWrite, WorkOpcode::RdmaWrite, WorkOpcode::RdmaWriteWithImmediate,
                              WorkOpcode::RdmaRead,  WorkOpcode::FetchAdd,  WorkOpcode::CompareSwap};

bool is_told(WorkOpcode opcode) {
    return opcode == WorkOpcode::Send || opcode == WorkOpcode::SendWithImmediate ||
           opcode == WorkOpcode::RdmaWriteWithImmediate;
}
bool overlap(const VerbsWork& one, const VerbsWork& other) {
    return one.to < other.to + other.bytes && other.to < one.to + one.bytes;
}

}  // namespace

void VerbsTraffic::post_some(VerbsEnd& end) {
    for (std::uint64_t left = random_.between(1, 4); left > 0; --left) {
        if (end.out.pending.size() < end.send_slots) {
            const WorkOpcode opcode = kOpcodes[random_.below(kOpcodes.size())];
            post(end, opcode, roce::is_atomic(opcode) ? roce::kAtomicBytes : choose_bytes(end));
        }
    }
}

void VerbsTraffic::post_probe(VerbsEnd& end) {
    if (end.out.pending.size() < end.send_slots) {
        post(end, WorkOpcode::Send, choose_bytes(end));
    }
}

// Draws short lengths, whole packets and one byte more or less, and any.
std::uint32_t VerbsTraffic::choose_bytes(const VerbsEnd& end) {
    const std::uint32_t mtu = end.qp->attributes().path_mtu_bytes;
    const std::uint64_t kind = random_.below(4);
    if (kind == 0) {
        return static_cast<std::uint32_t>(random_.below(9));
    }
    if (kind == 1) {
        const std::uint64_t packets = random_.between(1, VerbsHost::kMostBytes / mtu);
        return static_cast<std::uint32_t>(
            std::min<std::uint64_t>(packets * mtu + random_.below(3) - 1, VerbsHost::kMostBytes));
    }
    return static_cast<std::uint32_t>(random_.below(kind == 2 ? 1000 : VerbsHost::kMostBytes + 1));
}

// Looks for a place in the target. No two WRITEs that may be under way go to the same place.
bool VerbsTraffic::find_room(const VerbsEnd& end, VerbsWork& work) {
    for (int tries = 0; tries < 4; ++tries) {
        work.to = static_cast<std::uint32_t>(random_.below(VerbsTarget::kBytes - work.bytes + 1));
        const auto meets = [&work](const VerbsWork& other) { return is_write(other.opcode) && overlap(work, other); };
        if (std::none_of(end.out.pending.begin(), end.out.pending.end(), meets)) {
            return true;
        }
    }
    return false;
}

void VerbsTraffic::post(VerbsEnd& end, WorkOpcode opcode, std::uint32_t bytes) {
    VerbsWork work;
    work.opcode = opcode;
    work.bytes = bytes;
    work.wr_id = ++next_wr_id_;
    work.signalled =
        opcode == WorkOpcode::Send || end.out.pending.size() + 1 == end.send_slots || random_.chance(kMillion / 2);
    work.doomed = end.qp->state() == QpState::Err;
    work.from = static_cast<std::uint32_t>(random_.below(VerbsHost::kSourceBytes - bytes + 1));
    work.landing = static_cast<std::uint32_t>(end.out.posted % VerbsHost::kRequests);
    if (is_write(opcode) && !find_room(end, work)) {
        return;
    }
    const bool fetches = opcode == WorkOpcode::RdmaRead || roce::is_atomic(opcode);
    work.staged = !fetches && random_.chance(kMillion / 2);
    if (work.staged) {
        std::memcpy(landing_of(end, work), host_of(end).at(VerbsHost::kBase + work.from), bytes);
    }
    const bool is_own = fetches || work.staged;
    const std::uint64_t local =
        is_own ? VerbsHost::slot_address(end.slot) + VerbsHost::kLandings + work.landing * VerbsHost::kMostBytes
               : VerbsHost::kBase + work.from;
    const Lkey lkey = is_own ? end.region->lkey() : host_of(end).region->lkey();
    const auto split = static_cast<std::uint32_t>(roce::is_atomic(opcode) ? bytes : random_.below(bytes + 1));
    const std::array<verbs::Sge, 2> sges{verbs::Sge{local, split, lkey},
                                         verbs::Sge{local + split, bytes - split, lkey}};
    verbs::SendRequest request;
    request.wr_id = work.wr_id;
    request.opcode = opcode;
    request.signalled = work.signalled;
    request.solicited = random_.chance(kMillion / 4);
    request.fence = random_.chance(kMillion / 8);
    request.sges = std::span(sges).first(roce::is_atomic(opcode) ? 1 : 2);
    if (!fetches && bytes <= kInlineBytes && random_.chance(kMillion / 2)) {
        request.is_inline = true;
        request.sges = {};
        request.inline_bytes = {host_of(end).at(local), bytes};
    }
    request.immediate = static_cast<std::uint32_t>(random_.next());
    aim(end, work, request);
    expect(end.qp->post_send(request) == PostVerdict::Posted, "a send request was refused", end);
    keep(end, work, request);
}

// Chooses the remote memory. READs are of memory that never changes. Each end has words of its own at its peer.
void VerbsTraffic::aim(const VerbsEnd& end, VerbsWork& work, verbs::SendRequest& request) {
    const std::uint64_t slot = VerbsHost::slot_address(end.heard.slot);
    request.rkey = Rkey{end.heard.slot_key};
    if (is_write(work.opcode)) {
        request.remote_address = slot + VerbsHost::kTarget + work.to;
    } else if (work.opcode == WorkOpcode::RdmaRead) {
        request.rkey = Rkey{end.heard.source_key};
        request.remote_address = VerbsHost::kBase + work.from;
    } else if (roce::is_atomic(work.opcode)) {
        work.word = random_.below(VerbsTarget::kWords);
        request.remote_address = slot + VerbsHost::kWords + work.word * roce::kAtomicBytes;
        const std::vector<std::uint64_t>& values = ends_.find(end.peer)->target.values[work.word];
        work.step = values.size() - 1;
        work.original = values.back();
        request.compare = random_.chance(kMillion / 2) ? work.original : work.original + 1;
        request.swap_or_add = random_.next();
    }
}

// Records the request, which the peer may see from now on.
void VerbsTraffic::keep(VerbsEnd& end, const VerbsWork& work, const verbs::SendRequest& request) {
    ++counters_.requests;
    ++end.out.posted;
    end.out.pending.push_back(work);
    if (work.doomed) {
        return;
    }
    if (roce::is_atomic(work.opcode)) {
        const bool adds = work.opcode == WorkOpcode::FetchAdd;
        const std::uint64_t changed = adds                               ? work.original + request.swap_or_add
                                      : work.original == request.compare ? request.swap_or_add
                                                                         : work.original;
        ends_.find(end.peer)->target.values[work.word].push_back(changed);
    }
    if (is_told(work.opcode)) {
        const bool writes = is_write(work.opcode);
        VerbsMessage message{
            writes ? verbs::CompletionOpcode::ReceiveRdmaWithImmediate : verbs::CompletionOpcode::Receive,
            request.solicited, work.bytes, work.from, std::nullopt};
        if (work.opcode != WorkOpcode::Send) {
            message.immediate = request.immediate;
        }
        end.out.messages.push_back(message);
    }
}

void VerbsTraffic::post_receives(VerbsEnd& end, bool lazy) {
    if (end.shared || end.qp->state() != QpState::Rts || is_put_off(lazy)) {
        return;
    }
    const std::uint64_t wanted = lazy ? random_.below(VerbsHost::kRequests + 1) : VerbsHost::kRequests;
    while (end.in.receives.size() < wanted) {
        const std::uint64_t at = VerbsHost::slot_address(end.slot) + VerbsHost::kReceives +
                                 end.in.posted % VerbsHost::kRequests * VerbsHost::kMostBytes;
        const std::array<verbs::Sge, 2> sges = split_at(at, end.region->lkey());
        const std::uint64_t wr_id = ++next_wr_id_ | kReceiveBit;
        expect(end.qp->post_receive({wr_id, sges}) == PostVerdict::Posted, "a receive request was refused", end);
        end.in.receives.push_back(wr_id);
        ++end.in.posted;
    }
}

void VerbsTraffic::post_shared_receives(VerbsHost& host, bool lazy) {
    const std::size_t left = is_put_off(lazy) ? host.shared_free.size() : 0;
    while (host.shared_free.size() > left) {
        const std::size_t cell = host.shared_free.back();
        host.shared_free.pop_back();
        const std::array<verbs::Sge, 2> sges = split_at(VerbsHost::shared_address(cell), host.region->lkey());
        const verbs::ReceiveRequest request{++next_wr_id_ | kReceiveBit, sges};
        host.shared_posted[request.wr_id] = cell;
        world_.check(host.shared->post({&request, 1}).verdict == PostVerdict::Posted, "a receive request was refused",
                     &host.node);
    }
}

// Returns two pieces, split anywhere.
std::array<verbs::Sge, 2> VerbsTraffic::split_at(std::uint64_t address, Lkey lkey) {
    const auto split = static_cast<std::uint32_t>(random_.below(VerbsHost::kMostBytes + 1));
    return {verbs::Sge{address, split, lkey}, verbs::Sge{address + split, VerbsHost::kMostBytes - split, lkey}};
}

}  // namespace cairn::sim
