// The requests that a program builds between ibv_wr_start() and ibv_wr_complete().
#pragma once

#include <infiniband/verbs.h>

#include <mutex>
#include <vector>

namespace cairn::ibverbs {

// Requests of one batch. None is posted before wr_complete(), and then all or none.
struct Posting {
    struct Request {
        ibv_send_wr wr{};
        std::vector<ibv_sge> sges;
        std::vector<std::uint8_t> inline_bytes;
        ibv_sge inline_piece{};  // the inline bytes, as the request's one piece
    };

    std::mutex mutex;               // held from wr_start() to wr_complete() or wr_abort()
    std::vector<Request> requests;  // the first `count` are of this batch; the others keep their memory
    std::size_t count = 0;
    int reason = 0;  // errno value of the first that went wrong

    // Begins the next request.
    ibv_send_wr& begin(const ibv_qp_ex& qp, ibv_wr_opcode opcode) noexcept;
    // Returns the request that is being built; nullptr if there is none, which is an error of the program.
    [[nodiscard]] Request* current() noexcept;
};

// Fills in the operations by which a program posts to an extended queue pair.
void set_posting(ibv_qp_ex& qp) noexcept;

}  // namespace cairn::ibverbs
