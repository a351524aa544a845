// A log of the datagrams between the hosts of a simulated world that exchanges bare datagrams. It keeps them as frames
// for Wireshark, and reports each to a witness.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/port/path.hpp"
#include "lib/sim/capture.hpp"

namespace cairn::sim {

class DatagramLog {
public:
    struct Passage {
        Instant sent{};
        std::size_t from = 0;
        std::size_t to = 0;
        std::string_view fate;  // "delivered", "lost", ...
    };
    using Witness = std::function<void(const Passage& passage, std::span<const std::uint8_t> datagram)>;

    // Hosts are numbered from 0; host i has the address 10.0.0.(i + 1).
    explicit DatagramLog(std::size_t hosts);

    void set_witness(Witness witness) { witness_ = std::move(witness); }
    // Adds a datagram, which is BTH ... the room for the ICRC. The log computes the ICRC.
    void add(const Passage& passage, std::span<const std::uint8_t> datagram);

    [[nodiscard]] const Capture& capture() const noexcept { return capture_; }
    [[nodiscard]] std::uint64_t datagrams() const noexcept { return datagrams_; }

private:
    std::size_t hosts_;
    std::vector<port::Path> paths_;  // from each host to each
    Capture capture_;
    Witness witness_;
    std::uint64_t datagrams_ = 0;
    std::vector<std::uint8_t> frame_;
};

}  // namespace cairn::sim
