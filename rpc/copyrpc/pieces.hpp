// Memory that is READ or WRITTEN at a session's peer, piece by piece.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "lib/verbs/device.hpp"
#include "rpc/copyrpc/place.hpp"

namespace cairn::copyrpc {

// Each finished piece shows that the peer lives. Batches pass between pieces.
struct Pieces {
    static constexpr std::uint32_t kPieceBytes = 256U << 10U;

    Place place{};                   // at the peer
    std::unique_ptr<verbs::Mr> key;  // key of the memory here; nullptr: no piece was posted
    std::uint32_t bytes = 0;
    std::uint32_t posted = 0;  // pieces that were posted
    std::uint32_t done = 0;

    [[nodiscard]] bool is_posted() const noexcept { return posted == bytes; }
    // Posts the next piece; there is one, and a key. Returns false if the send queue is full. If `fenced`, a WRITE
    // waits for READs that were posted before it.
    [[nodiscard]] bool post(verbs::Qp& qp, verbs::WorkOpcode opcode, std::uint64_t work, bool fenced = false) noexcept {
        const std::uint32_t piece = std::min(bytes - posted, kPieceBytes);
        const std::array<verbs::Sge, 1> memory{key->sge(posted, piece)};
        verbs::SendRequest request;
        request.opcode = opcode;
        request.wr_id = work;
        request.fence = fenced;
        request.sges = memory;
        request.remote_address = place.address + posted;
        request.rkey = place.rkey;
        if (qp.post_send(request) != verbs::PostVerdict::Posted) {
            return false;
        }
        posted += piece;
        return true;
    }
    // Notes that the oldest piece is done. Returns true if it was the last one.
    [[nodiscard]] bool advance() noexcept {
        done += std::min(bytes - done, kPieceBytes);
        return done == bytes;
    }
};

// The pieces of a session under way, and whether they make progress.
class PiecesUnderWay {
public:
    void on_done() noexcept { still_looks_ = 0; }
    // Looks from time to time. Returns true if there are pieces, and the peer holds them up.
    [[nodiscard]] bool is_stuck(std::uint32_t pieces) noexcept { return pieces != 0 && ++still_looks_ >= kMostLooks; }

private:
    static constexpr std::uint8_t kMostLooks = 16;  // a peer that is completely silent is lost after 8
    std::uint8_t still_looks_ = 0;                  // successive looks without a finished piece
};

}  // namespace cairn::copyrpc
