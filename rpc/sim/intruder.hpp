// A hostile host. It opens sessions from ever new UDP ports and holds them by pings. It sends packets in the name of a
// bystander, which gets the answers. It sends overheard packets again.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"
#include "rpc/erpc/control.hpp"
#include "rpc/sim/draft.hpp"

namespace cairn::sim {

class Intruder {
public:
    // Makes the host at place `node` of the network. `bystander`: the place of a host that never sends. The servers
    // have the places [first_server, end_of_servers), and endpoints with the queue pair number `qpn`.
    Intruder(Network& network, std::size_t node, std::size_t bystander, std::size_t first_server,
             std::size_t end_of_servers, std::uint16_t path_mtu_bytes, Qpn qpn, std::uint64_t seed) noexcept
        : network_(network),
          node_(node),
          bystander_(bystander),
          first_server_(first_server),
          end_of_servers_(end_of_servers),
          path_mtu_bytes_(path_mtu_bytes),
          qpn_(qpn),
          random_(seed) {}

    [[nodiscard]] std::size_t node() const noexcept { return node_; }
    [[nodiscard]] std::size_t bystander() const noexcept { return bystander_; }
    // Records a frame between two other hosts.
    void overhear(const Frame& frame);
    void on_frame(const Frame& frame, Instant now);
    void on_bystanders_frame(const Frame& frame) noexcept { to_bystander_ += frame.bytes.size(); }
    void act(Instant now);

    [[nodiscard]] std::uint64_t opened() const noexcept { return opened_; }
    [[nodiscard]] std::uint64_t replayed() const noexcept { return replayed_; }
    [[nodiscard]] std::uint64_t spoofed() const noexcept { return spoofed_; }
    // True if the bystander got more than three bytes for each byte sent in its name. kDoubles allows for frames that
    // the network duplicates.
    [[nodiscard]] bool amplified() const noexcept { return to_bystander_ > 3 * from_bystander_ + kDoubles; }

private:
    struct Held {
        std::size_t server = 0;
        std::uint16_t udp_port = 0;
        std::uint64_t token = 0;
    };
    static constexpr std::size_t kOverheardMost = 256;
    static constexpr std::uint64_t kDoubles = 1000;

    void connect(Instant now);
    void ask_for_nothing(const erpc::Control& accepted, std::size_t server, std::uint16_t udp_port, Instant now);
    void hold(Instant now);
    void spoof(Instant now);
    [[nodiscard]] erpc::Control proposal(std::uint64_t token) const noexcept;
    [[nodiscard]] std::size_t any_server() { return random_.between(first_server_, end_of_servers_ - 1); }
    std::size_t send(Draft& draft, std::size_t from, std::size_t to, std::uint16_t udp_port, Instant now);
    std::size_t send(const erpc::Control& control, std::size_t from, std::size_t to, std::uint16_t udp_port,
                     Instant now);

    Network& network_;
    std::size_t node_;
    std::size_t bystander_;
    std::size_t first_server_;
    std::size_t end_of_servers_;
    std::uint16_t path_mtu_bytes_;
    Qpn qpn_;
    Random random_;
    std::vector<Frame> overheard_;
    std::vector<Held> held_;
    std::size_t next_ping_ = 0;
    std::uint16_t next_port_ = 1;
    std::uint64_t pings_ = 0;
    std::uint64_t opened_ = 0;
    std::uint64_t replayed_ = 0;
    std::uint64_t spoofed_ = 0;
    std::uint64_t from_bystander_ = 0;
    std::uint64_t to_bystander_ = 0;
};

}  // namespace cairn::sim
