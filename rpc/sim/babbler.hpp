// A hostile host that opens and accepts sessions, but sends invalid packets. It mixes valid packets with sizes,
// numbers, credits and versions that no honest peer sends. It acts as a client of servers and as a server of clients.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"
#include "rpc/erpc/header.hpp"
#include "rpc/sim/draft.hpp"

namespace cairn::sim {

constexpr Qkey kErpcQkey{0x205};  // of each endpoint

class Babbler {
public:
    // The types of this host's requests, which no other host uses. The first runs on the worker, the second in the
    // background, and the third has no handler.
    static constexpr std::uint8_t kType = 10;
    static constexpr std::uint8_t kBackgroundType = 11;
    static constexpr std::uint8_t kNoType = 12;

    // Makes the host at place `node` of the network. It listens only to the first `hosts` places, whose endpoints have
    // the queue pair number `qpn`.
    Babbler(Network& network, std::size_t node, std::size_t hosts, std::uint16_t path_mtu_bytes, Qpn qpn,
            std::uint64_t seed) noexcept;

    [[nodiscard]] std::size_t node() const noexcept { return node_; }
    // Takes a frame for this host. It learns of sessions, and answers so that its peers keep them.
    void on_frame(const Frame& frame, Instant now);
    // Sends one packet, either in one of its sessions or to `server`, which may take this host for a client.
    void babble(std::size_t server, Instant now);
    [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
    // Returns how many sessions servers opened for invalid parameters.
    [[nodiscard]] std::uint64_t believed() const noexcept { return believed_; }

private:
    // The state of one session.
    struct Talk {
        std::size_t peer = 0;
        bool serves = false;  // the peer is the client
        SessionId theirs{};
        std::uint64_t token = 0;
        std::uint64_t first_request = 0;
        erpc::Header request{};  // the peer's last request, if this host serves
    };
    static constexpr std::size_t kTalksMost = 8;

    void on_control(const erpc::Control& control, std::size_t from, Instant now);
    void send_control(std::size_t to, const erpc::Control& control, Instant now);
    void connect(std::size_t server, Instant now);
    [[nodiscard]] erpc::Control parameters_of(std::uint64_t token);
    void send_data(const Talk& talk, erpc::Header header, std::size_t payload_bytes, Instant now);
    [[nodiscard]] erpc::Header request_to(const Talk& talk, std::size_t& payload_bytes);
    [[nodiscard]] erpc::Header answer_to(const Talk& talk, std::size_t& payload_bytes);
    [[nodiscard]] std::uint32_t any_size();
    [[nodiscard]] std::uint16_t any_number();
    void spoil(erpc::RawHeader& header);
    void send(Draft& draft, std::size_t to, Instant now);

    Network& network_;
    std::size_t node_;
    std::size_t hosts_;
    std::uint32_t packet_bytes_;  // payload of a packet that is not a message's last
    std::uint16_t path_mtu_bytes_;
    Qpn qpn_;
    Random random_;
    std::uint64_t first_request_ = random_.next();  // the first request number of all sessions that it takes
    std::vector<Talk> talks_;                       // oldest first
    std::uint64_t sent_ = 0;
    std::uint64_t believed_ = 0;
};

}  // namespace cairn::sim
