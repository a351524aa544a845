// A host with sessions of its own whose packets make no sense: sizes, numbers, credits and versions that no sound peer
// sends, mixed with what is right, as a server's client and as a client's server.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"
#include "rpc/erpc/header.hpp"
#include "rpc/sim/draft.hpp"

namespace cairn::sim {

class Babbler {
public:
    // The types of its requests, which nobody else's have: one runs in the worker, one in the background, one has no
    // handler.
    static constexpr std::uint8_t kType = 10;
    static constexpr std::uint8_t kBackgroundType = 11;
    static constexpr std::uint8_t kNoType = 12;

    // `node` is its own place in the network; it listens to the first `hosts` alone, whose endpoints have this number.
    Babbler(Network& network, std::size_t node, std::size_t hosts, std::uint16_t path_mtu_bytes, Qpn qpn,
            std::uint64_t seed) noexcept;

    [[nodiscard]] std::size_t node() const noexcept { return node_; }
    // What came for it: it learns whom it can talk to, and answers so that they stay.
    void on_frame(const Frame& frame, Instant now);
    // One packet, to one of those it has a session with or to `server`, which may take it for a client.
    void babble(std::size_t server, Instant now);
    [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
    // Sessions that servers opened for parameters that make no sense.
    [[nodiscard]] std::uint64_t believed() const noexcept { return believed_; }

private:
    // A session, as far as it exists.
    struct Talk {
        std::size_t peer = 0;
        bool serves = false;  // the peer is the client
        SessionId theirs{};
        std::uint64_t token = 0;
        std::uint64_t first_request = 0;
        erpc::Header request{};  // the peer's last, if it serves
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
    std::uint64_t first_request_ = random_.next();  // of all sessions that it takes
    std::vector<Talk> talks_;                       // the oldest first
    std::uint64_t sent_ = 0;
    std::uint64_t believed_ = 0;
};

}  // namespace cairn::sim
