#include "lib/ibverbs/posting.hpp"

#include <cerrno>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/qp.hpp"

namespace cairn::ibverbs {

namespace {

Posting& posting_of(ibv_qp_ex* qp) noexcept {
    return *static_cast<Qp*>(qp)->posting;
}

void begin_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address) noexcept {
    ibv_send_wr& wr = posting_of(qp).begin(*qp, opcode);
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
}

void begin_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address, std::uint64_t first,
                  std::uint64_t second) noexcept {
    ibv_send_wr& wr = posting_of(qp).begin(*qp, opcode);
    wr.wr.atomic = {address, first, second, rkey};
}

void set_sges(ibv_qp_ex* qp, std::span<const ibv_sge> sges) noexcept {
    Posting& posting = posting_of(qp);
    Posting::Request* const request = posting.current();
    if (request == nullptr) {
        return;
    }
    posting.reason = posting.reason != 0 ? posting.reason : result_of([&] {
        request->sges.assign(sges.begin(), sges.end());
        return 0;
    });
}

void set_inline(ibv_qp_ex* qp, std::span<const ibv_data_buf> pieces) noexcept {
    Posting& posting = posting_of(qp);
    Posting::Request* const request = posting.current();
    if (request == nullptr) {
        return;
    }
    posting.reason = posting.reason != 0 ? posting.reason : result_of([&] {
        request->wr.send_flags |= IBV_SEND_INLINE;
        request->inline_bytes.clear();
        for (const ibv_data_buf& piece : pieces) {
            if (piece.length > roce::kMaxInlineBytes - request->inline_bytes.size()) {
                return EINVAL;
            }
            const auto* const bytes = static_cast<const std::uint8_t*>(piece.addr);
            request->inline_bytes.insert(request->inline_bytes.end(), bytes, bytes + piece.length);
        }
        return 0;
    });
}

void complete(Posting::Request& request) noexcept {
    request.inline_piece = {reinterpret_cast<std::uint64_t>(request.inline_bytes.data()),
                            static_cast<std::uint32_t>(request.inline_bytes.size()), 0};
    const bool is_inline = (request.wr.send_flags & IBV_SEND_INLINE) != 0;
    request.wr.sg_list = is_inline ? &request.inline_piece : request.sges.data();
    request.wr.num_sge = is_inline ? 1 : static_cast<int>(request.sges.size());
}

// Judges all requests but the first, which is judged by being posted: if it is refused, none was posted. Posting one
// changes no verdict of another.
[[nodiscard]] int judge_others(const Qp& qp, std::span<Posting::Request> requests) noexcept {
    int reason = 0;
    for (std::size_t i = 1; i < requests.size() && reason == 0; ++i) {
        reason = judge_one(qp, requests[i].wr);
    }
    return reason;
}

[[nodiscard]] int post_all(Qp& qp, std::span<Posting::Request> requests, Adapter& adapter) noexcept {
    if (requests.empty() || requests.size() > free_slots(qp)) {
        return requests.empty() ? 0 : ENOMEM;
    }
    for (Posting::Request& each : requests) {
        complete(each);
    }
    std::uint64_t bytes = 0;
    int reason = judge_others(qp, requests);
    for (std::size_t i = 0; i < requests.size() && reason == 0; ++i) {
        reason = post_one(qp, requests[i].wr, bytes);
        CAIRN_ASSERT(reason == 0 || i == 0);
    }
    if (reason == 0) {
        wake(qp, adapter.engine());
        adapter.on_posted(bytes);
    }
    return reason;
}

int wr_complete(ibv_qp_ex* qp) noexcept {
    Posting& posting = posting_of(qp);
    int reason = posting.reason;
    if (reason == 0) {
        Adapter& adapter = adapter_of(qp->qp_base.context);
        const std::lock_guard hold(adapter.lock());
        reason = post_all(*static_cast<Qp*>(qp), std::span(posting.requests).first(posting.count), adapter);
    }
    posting.mutex.unlock();
    return reason;
}

void set_operations_of_memory(ibv_qp_ex& qp) noexcept {
    qp.wr_rdma_write = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t address) {
        begin_rdma(of, IBV_WR_RDMA_WRITE, rkey, address);
    };
    qp.wr_rdma_write_imm = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
        begin_rdma(of, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
        if (Posting::Request* const request = posting_of(of).current()) {
            request->wr.imm_data = immediate;
        }
    };
    qp.wr_rdma_read = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t address) {
        begin_rdma(of, IBV_WR_RDMA_READ, rkey, address);
    };
    qp.wr_atomic_cmp_swp = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                              std::uint64_t swap) {
        begin_atomic(of, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
    };
    qp.wr_atomic_fetch_add = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
        begin_atomic(of, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, add, 0);
    };
    qp.wr_atomic_write = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t address, const void* word) {
        begin_rdma(of, IBV_WR_ATOMIC_WRITE, rkey, address);
        const ibv_data_buf piece{const_cast<void*>(word), roce::kAtomicBytes};
        set_inline(of, {&piece, 1});
    };
    qp.wr_bind_mw = [](ibv_qp_ex* of, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
        ibv_send_wr& wr = posting_of(of).begin(*of, IBV_WR_BIND_MW);
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = rkey;
        wr.bind_mw.bind_info = *info;
    };
    qp.wr_local_inv = [](ibv_qp_ex* of, std::uint32_t rkey) {
        posting_of(of).begin(*of, IBV_WR_LOCAL_INV).invalidate_rkey = rkey;
    };
}

void set_operations_of_messages(ibv_qp_ex& qp) noexcept {
    qp.wr_send = [](ibv_qp_ex* of) { posting_of(of).begin(*of, IBV_WR_SEND); };
    qp.wr_send_imm = [](ibv_qp_ex* of, __be32 immediate) {
        posting_of(of).begin(*of, IBV_WR_SEND_WITH_IMM).imm_data = immediate;
    };
    qp.wr_send_inv = [](ibv_qp_ex* of, std::uint32_t rkey) {
        posting_of(of).begin(*of, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey;
    };
    qp.wr_send_tso = [](ibv_qp_ex* of, void*, std::uint16_t, std::uint16_t) { posting_of(of).reason = EOPNOTSUPP; };
    qp.wr_set_ud_addr = [](ibv_qp_ex* of, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
        if (Posting::Request* const request = posting_of(of).current()) {
            request->wr.wr.ud = {ah, qpn, qkey};
        }
    };
    qp.wr_set_xrc_srqn = [](ibv_qp_ex* of, std::uint32_t srqn) {
        if (Posting::Request* const request = posting_of(of).current()) {
            request->wr.qp_type.xrc.remote_srqn = srqn;
        }
    };
    qp.wr_set_inline_data = [](ibv_qp_ex* of, void* address, std::size_t bytes) {
        const ibv_data_buf piece{address, bytes};
        set_inline(of, {&piece, 1});
    };
    qp.wr_set_inline_data_list = [](ibv_qp_ex* of, std::size_t count, const ibv_data_buf* pieces) {
        set_inline(of, {pieces, count});
    };
    qp.wr_set_sge = [](ibv_qp_ex* of, std::uint32_t lkey, std::uint64_t address, std::uint32_t bytes) {
        const ibv_sge piece{address, bytes, lkey};
        set_sges(of, {&piece, 1});
    };
    qp.wr_set_sge_list = [](ibv_qp_ex* of, std::size_t count, const ibv_sge* pieces) { set_sges(of, {pieces, count}); };
}

}  // namespace

ibv_send_wr& Posting::begin(const ibv_qp_ex& qp, ibv_wr_opcode opcode) noexcept {
    if (count == requests.size()) {
        const int refused = result_of([this] {
            requests.emplace_back();
            return 0;
        });
        if (refused != 0) {  // the last request is written again, and none of them is posted
            reason = refused;
            static thread_local ibv_send_wr nowhere;
            return count == 0 ? nowhere : requests[count - 1].wr;
        }
    }
    Request& request = requests[count++];
    request.sges.clear();
    request.inline_bytes.clear();
    request.wr = {};
    request.wr.wr_id = qp.wr_id;
    request.wr.send_flags = qp.wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
    request.wr.opcode = opcode;
    return request.wr;
}

Posting::Request* Posting::current() noexcept {
    if (count == 0) {
        reason = reason != 0 ? reason : EINVAL;
        return nullptr;
    }
    return &requests[count - 1];
}

void set_posting(ibv_qp_ex& qp) noexcept {
    set_operations_of_memory(qp);
    set_operations_of_messages(qp);
    qp.wr_start = [](ibv_qp_ex* of) {
        Posting& posting = posting_of(of);
        posting.mutex.lock();
        posting.count = 0;
        posting.reason = 0;
    };
    qp.wr_complete = wr_complete;
    qp.wr_abort = [](ibv_qp_ex* of) { posting_of(of).mutex.unlock(); };
}

}  // namespace cairn::ibverbs
