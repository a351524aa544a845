// PeerMail: messages to the shards of other processes, in order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fs/daemon/peer_links.hpp"

namespace cairn::fs {

// Each message is a call without an answer, so the receiver's memory bounds what is under way. Other messages wait here
// for room. If too much waits for a peer, the peer counts as lost.
class PeerMail {
public:
    static constexpr std::size_t kMostBytes = 8U << 20U;  // unanswered bytes to one peer
    static constexpr std::uint32_t kMostCalls = 2048;     // unanswered calls to all peers

    // Makes it. All arguments outlive it.
    PeerMail(copyrpc::Endpoint& endpoint, PeerLinks& links, worker::Worker& worker, PeerCounters& counters);
    PeerMail(const PeerMail&) = delete;
    PeerMail& operator=(const PeerMail&) = delete;

    // Sends a message to a peer. If the peer is not there, the message is dropped.
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
    std::vector<std::size_t> unanswered_;  // by peer, in bytes
};

}  // namespace cairn::fs
