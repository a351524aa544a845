#include "lib/roce/qp/send_queue.hpp"

#include <algorithm>

#include "lib/base/copy.hpp"

namespace cairn::roce {

namespace {

// Most requests have one SGE, which does not pay for a vectorised loop.
std::uint64_t bytes_of(std::span<const Sge> sges) noexcept {
    if (sges.size() == 1) [[likely]] {
        return sges[0].bytes;
    }
    std::uint64_t bytes = 0;
    for (const Sge& sge : sges) {
        bytes += sge.bytes;
    }
    return bytes;
}

void take_binding(SendWqe& wqe, const WindowBinding& binding) noexcept {
    wqe.rkey = binding.window;
    wqe.invalidate = Rkey{binding.region.value};
    wqe.remote_address = binding.address;
    wqe.compare = binding.bytes;
    wqe.rights = binding.rights;
    wqe.flags.zero_based = binding.zero_based;
}

void take_flush(SendWqe& wqe, const FlushRange& range) noexcept {
    wqe.sge_count = 0;
    wqe.bytes = range.bytes;
    wqe.set_flush({static_cast<std::uint8_t>((range.global ? wire::Feth::kGlobal : 0U) |
                                             (range.persistent ? wire::Feth::kPersistent : 0U)),
                   range.whole ? wire::Feth::kWhole : wire::Feth::kRange});
}

}  // namespace

PostVerdict SendQueue::judge(const SendRequest& request) const noexcept {
    if (request.opcode >= WorkOpcode::Count) {
        return PostVerdict::BadOpcode;
    }
    const WorkTraits& work = work_traits(request.opcode);
    // The word of an AtomicWrite is a part of its request: there is room for it in place of an SGE.
    const std::uint32_t most_inline = work.is_word ? kAtomicBytes : inline_bytes_;
    if (request.is_inline && (work.data != WorkData::Sent || request.inline_bytes.size() > most_inline)) {
        return PostVerdict::BadInline;
    }
    if (request.sges.size() > max_sges_) {
        return PostVerdict::TooManySges;
    }
    const std::uint32_t most = request.opcode == WorkOpcode::RdmaRead ? read_bytes_ : kMaxMessageBytes;
    if (bytes_of(request.sges) > most) {
        return PostVerdict::TooLong;
    }
    const bool one_word = request.is_inline ? request.inline_bytes.size() == kAtomicBytes
                                            : request.sges.size() == 1 && request.sges[0].bytes == kAtomicBytes;
    if (work.is_word && !one_word) {
        return PostVerdict::BadAtomic;
    }
    if (request.opcode == WorkOpcode::Flush && !request.flush.global && !request.flush.persistent) {
        return PostVerdict::BadFlush;
    }
    return tail_ - head_ == slots_ ? PostVerdict::QueueFull : PostVerdict::Posted;
}

PostVerdict SendQueue::post(const SendRequest& request) noexcept {
    const PostVerdict verdict = judge(request);
    if (verdict != PostVerdict::Posted) {
        return verdict;
    }
    if (reuses_) {
        base_ = next_base();
    }
    SendWqe& wqe = at(tail_);
    wqe.wr_id = request.wr_id;
    wqe.remote_address = request.remote_address;
    wqe.compare = request.compare;
    wqe.swap_or_add = request.swap_or_add;
    wqe.immediate = request.immediate;
    wqe.rkey = request.rkey;
    wqe.invalidate = request.invalidate;
    wqe.srqn = request.remote_srqn;
    wqe.opcode = request.opcode;
    wqe.flags = {request.signalled, request.solicited, request.fence, request.is_inline, false, false, 0};
    if (request.is_inline) {
        wqe.sge_count = 0;
        wqe.bytes = static_cast<std::uint32_t>(request.inline_bytes.size());
        copy_bytes(inline_at(tail_).data(), request.inline_bytes.data(), request.inline_bytes.size());
    } else {
        wqe.sge_count = static_cast<std::uint8_t>(request.sges.size());
        wqe.bytes = static_cast<std::uint32_t>(bytes_of(request.sges));
        std::copy(request.sges.begin(), request.sges.end(), sges_at(tail_));
    }
    if (request.opcode == WorkOpcode::BindWindow) {
        take_binding(wqe, request.bind);
    } else if (request.opcode == WorkOpcode::Flush) {
        take_flush(wqe, request.flush);
    }
    ++tail_;
    return PostVerdict::Posted;
}

}  // namespace cairn::roce
