// Posting: a request is translated, judged and taken by the engine, under the adapter's lock.
#include <arpa/inet.h>

#include <algorithm>

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/post.hpp"
#include "lib/ibverbs/qp.hpp"
#include "lib/ibverbs/window.hpp"

namespace cairn::ibverbs {

namespace {

using InlineBytes = std::array<std::uint8_t, roce::kMaxInlineBytes>;

// Copies the pieces to `out`. Returns false if they are too long.
[[nodiscard]] bool gather(const ibv_send_wr& from, InlineBytes& out, std::span<const std::uint8_t>& bytes) noexcept {
    std::size_t count = 0;
    for (int i = 0; i < from.num_sge; ++i) {
        const ibv_sge& piece = from.sg_list[i];
        if (piece.length > out.size() - count) {
            return false;
        }
        std::copy_n(reinterpret_cast<const std::uint8_t*>(piece.addr), piece.length, out.begin() + count);
        count += piece.length;
    }
    bytes = std::span(out).first(count);
    return true;
}

void set_target(const ibv_send_wr& from, roce::SendRequest& to) noexcept {
    if (to.opcode != roce::WorkOpcode::CompareSwap && to.opcode != roce::WorkOpcode::FetchAdd) {
        to.remote_address = from.wr.rdma.remote_addr;
        to.rkey = Rkey{from.wr.rdma.rkey};
        return;
    }
    to.remote_address = from.wr.atomic.remote_addr;
    to.rkey = Rkey{from.wr.atomic.rkey};
    to.compare = from.wr.atomic.compare_add;
    to.swap_or_add = to.opcode == roce::WorkOpcode::CompareSwap ? from.wr.atomic.swap : from.wr.atomic.compare_add;
}

// The memory that a request is translated to.
struct Room {
    Sges sges;
    InlineBytes inline_bytes;
};

// Translates a request. Returns an errno value.
[[nodiscard]] int translate(const Qp& qp, const ibv_send_wr& from, Room& room, roce::SendRequest& to) noexcept {
    const auto opcode = to_opcode(from.opcode);
    if (!opcode || !fits_sges(from.num_sge)) {
        return opcode || from.opcode <= IBV_WR_TSO ? EINVAL : EOPNOTSUPP;
    }
    to.wr_id = from.wr_id;
    to.opcode = *opcode;
    to.signalled = qp.signals_all || (from.send_flags & IBV_SEND_SIGNALED) != 0;
    to.solicited = (from.send_flags & IBV_SEND_SOLICITED) != 0;
    to.fence = (from.send_flags & IBV_SEND_FENCE) != 0;
    to.is_inline = (from.send_flags & IBV_SEND_INLINE) != 0;
    if (to.is_inline) {
        if (!gather(from, room.inline_bytes, to.inline_bytes)) {
            return EINVAL;
        }
    } else {
        to.sges = to_sges(from.sg_list, from.num_sge, room.sges);
    }
    to.immediate = ntohl(from.imm_data);
    to.invalidate = Rkey{from.invalidate_rkey};
    to.remote_srqn = Srqn{from.qp_type.xrc.remote_srqn};
    if (to.opcode == roce::WorkOpcode::BindWindow) {
        return describe_binding(qp.qp_base.context, from, to);
    }
    set_target(from, to);
    return 0;
}

[[nodiscard]] std::uint64_t bytes_of(const roce::SendRequest& request) noexcept {
    std::uint64_t bytes = 0;
    for (const roce::Sge& piece : request.sges) {
        bytes += piece.bytes;
    }
    return bytes;
}

// Returns an errno value. Reports a message that is longer than the device's limit. One within it that is too long is a
// READ.
[[nodiscard]] int reason_of(roce::PostVerdict verdict, const roce::SendRequest& request) noexcept {
    if (verdict == roce::PostVerdict::TooLong) [[unlikely]] {
        const std::uint64_t bytes = bytes_of(request);
        complain_of(bytes > roce::kMaxMessageBytes ? Limit::MessageBytes : Limit::ReadBytes, bytes);
    }
    return errno_of(verdict);
}

[[nodiscard]] bool has_way(const Qp& qp, const ibv_send_wr& from) noexcept {
    return from.wr.ud.ah != nullptr && is_of(qp.qp_base.context, from.wr.ud.ah);
}

}  // namespace

int post_one(Qp& qp, const ibv_send_wr& from, std::uint64_t& bytes) noexcept {
    Room room;
    roce::SendRequest request;
    const int reason = translate(qp, from, room, request);
    if (reason != 0) {
        return reason;
    }
    if (free_slots(qp) == 0) {
        return ENOMEM;
    }
    bytes += bytes_of(request);
    if (!qp.is_datagrams()) {
        return reason_of(qp.connection->pair.post_send(request), request);
    }
    if (!has_way(qp, from)) {
        return EINVAL;
    }
    return errno_of(qp.datagrams->post_send(
        {request, {Ah::of(from.wr.ud.ah).path, Qpn{from.wr.ud.remote_qpn}, Qkey{from.wr.ud.remote_qkey}}}));
}

int judge_one(const Qp& qp, const ibv_send_wr& from) noexcept {
    Room room;
    roce::SendRequest request;
    const int reason = translate(qp, from, room, request);
    if (reason != 0) {
        return reason;
    }
    if (!qp.is_datagrams()) {
        return reason_of(roce::rc::judge_send(qp.connection->pair, request), request);
    }
    return has_way(qp, from) ? errno_of(qp.datagrams->judge_send(request)) : EINVAL;
}

int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** refused) noexcept {
    Qp& to = Qp::of(qp);
    Adapter& adapter = adapter_of(qp->context);
    const std::lock_guard hold(adapter.lock());
    std::uint64_t bytes = 0;
    int reason = 0;
    ibv_send_wr* each = requests;
    for (; each != nullptr; each = each->next) {
        reason = post_one(to, *each, bytes);
        if (reason != 0) {
            *refused = each;
            break;
        }
    }
    if (each != requests) {
        wake(to, adapter.engine());
        adapter.on_posted(bytes);
    }
    return reason;
}

int post_receive(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** refused) noexcept {
    Qp& to = Qp::of(qp);
    const std::lock_guard hold(adapter_of(qp->context).lock());
    return post_receives(requests, refused, [&to](const roce::ReceiveRequest& one) noexcept {
        return to.is_datagrams() ? to.datagrams->post_receive(one) : to.connection->pair.post_receive(one);
    });
}

}  // namespace cairn::ibverbs
