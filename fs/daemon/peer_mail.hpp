// PeerMail: messages to the shards of other processes, in order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fs/daemon/peer_links.hpp"

namespace cairn::fs {

// Each message is a call without an answer, so that the other one's memory bounds what is under way. What waits for
// room waits here; a peer for which too much waits is given up.
class PeerMail {
public:
    static constexpr std::size_t kMostBytes = 8U << 20U;  // to a peer, that are not answered
    static constexpr std::uint32_t kMostCalls = 2048;     // to all peers

    // All outlive it.
    PeerMail(copyrpc::Endpoint& endpoint, PeerLinks& links, worker::Worker& worker, PeerCounters& counters);
    PeerMail(const PeerMail&) = delete;
    PeerMail& operator=(const PeerMail&) = delete;

    // Sends a message to a peer that is there; one to a peer that is not is gone.
    void send(ShardNumber to, PeerCall what, std::span<const std::uint8_t> bytes);

private:
    struct Letter {
        PeerMail* mail = nullptr;
        ShardNumber to = 0;
        SessionId session{};
        std::vector<std::uint8_t> bytes{};
        std::array<std::uint8_t, 8> none{};
        rpc::MsgBuffer response{};
    };

    static void on_done(void* context, const rpc::CallResult& result);

    copyrpc::Endpoint& endpoint_;
    PeerLinks& links_;
    worker::Worker& worker_;
    PeerCounters& counters_;
    std::vector<std::unique_ptr<Letter>> letters_;
    std::vector<Letter*> free_;
    std::vector<std::size_t> unanswered_;  // bytes, by peer
};

}  // namespace cairn::fs
