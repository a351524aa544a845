// A queue pair, of a connection or of datagrams, as a member of the list of queue pairs that take turns at sending.
#pragma once

#include <cstdint>

#include "lib/roce/qp/qp_ring.hpp"

namespace cairn::roce {

struct Turn {
    enum class Kind : std::uint8_t { Connection, Datagrams };

    explicit Turn(Kind of) noexcept : kind(of) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    QpRingLink<Turn> link{};
    QpRingLink<Turn> cached{};  // of the emulated context cache; unused without it
    const Kind kind;

protected:
    ~Turn() = default;
};

}  // namespace cairn::roce
