// Gateway: calls of this machine's clients on their way to shards of other processes.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "fs/daemon/peer_mail.hpp"
#include "fs/message/forwarded.hpp"
#include "fs/shard/calls.hpp"
#include "rpc/copyrpc/place.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::fs {

// A call that waits lies where its client has put it. One that was under way when its peer was lost goes again, with
// the same numbers, to the peer's next life; it fails once the peer was gone for too long.
class Gateway {
public:
    static constexpr std::uint32_t kMostUnderWay = 64;  // to a peer
    // Of what a peer has promised for answers, in blocks of its ring. The rest is for messages: a call may wait for
    // one.
    static constexpr std::uint32_t kMostPromised =
        copyrpc::RingShape(PeerLinkConfig::kRingBytes / copyrpc::kBlockBytes).charge_max() - 64;
    static constexpr Duration kPatience = seconds(5);               // with a peer that is gone, and
    static constexpr Duration kLeastPatience = milliseconds(1500);  // of each call: it may just be back

    // All outlive it. Answers go to `clients`.
    Gateway(copyrpc::Endpoint& endpoint, PeerLinks& links, PeerMail& mail, worker::Worker& worker, ShardHost& clients,
            PeerCounters& counters);
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    // All that the call refers to stays until it is answered.
    void take(const Call& call, ShardNumber to, Instant now);
    // The client is gone for good: its calls are answered, and those peers that have heard of it are told, if need be
    // when they are there again.
    void forget(std::uint64_t client);
    void on_found(ShardNumber peer);
    void on_lost(ShardNumber peer, Instant now);

    void on_turn(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept;

private:
    struct Sent {
        Gateway* gateway = nullptr;
        Call call{};
        ShardNumber to = 0;
        Instant fails_at{};                // if the peer is not there
        ParsedRequest asked{};             // names data from 0 on
        NamedData data{};                  // and where they lie
        std::span<std::uint8_t> memory{};  // of the client, there
        std::uint32_t answer = 0;          // room for it, in bytes
        std::optional<copyrpc::Place> place{};
        SessionId session{};
        std::vector<std::uint8_t> bytes{};
        std::vector<std::uint8_t> room{};
        rpc::MsgBuffer response{};
    };
    struct Peer {
        bool is_there = false;
        Instant lost_at{};
        std::deque<std::unique_ptr<Sent>> waiting{};
        std::vector<std::unique_ptr<Sent>> under_way{};
        std::uint32_t promised = 0;         // for those, in blocks
        std::set<std::uint64_t> clients{};  // that it has heard of
        std::deque<std::uint64_t> forgets{};
        std::deque<std::uint64_t> told{};  // of these it may not have heard, if it is lost
    };

    static void on_done(void* context, const rpc::CallResult& result);
    void finish(Sent& sent, const rpc::CallResult& result);
    [[nodiscard]] static bool judge(Sent& sent);
    [[nodiscard]] static bool has_room(const Peer& peer) noexcept;
    [[nodiscard]] bool send(Peer& peer, std::unique_ptr<Sent> sent);
    [[nodiscard]] bool compose(Sent& sent);
    [[nodiscard]] bool open_data(Sent& sent);
    void serve(ShardNumber number);
    void fail(const Sent& sent, std::int32_t error);

    copyrpc::Endpoint& endpoint_;
    PeerLinks& links_;
    PeerMail& mail_;
    worker::Worker& worker_;
    ShardHost& clients_;
    PeerCounters& counters_;
    std::vector<Peer> peers_;                                                           // by shard
    std::vector<std::uint8_t> draft_ = std::vector<std::uint8_t>(kMostForwardedBytes);  // of a message
};

}  // namespace cairn::fs
