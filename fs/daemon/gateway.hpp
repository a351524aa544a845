// Gateway: sends calls of this machine's clients to shards of other processes.
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

// A call that waits refers to its client's memory. A call that was under way when its peer was lost goes again, with
// the same numbers, to the peer's next life. It fails once the peer was gone for too long.
class Gateway {
public:
    static constexpr std::uint32_t kMostUnderWay = 64;  // calls to one peer
    // Blocks of the peer's ring that calls may use of the peer's promise for answers. The rest is for messages, since a
    // call may wait for one.
    static constexpr std::uint32_t kMostPromised =
        copyrpc::RingShape(PeerLinkConfig::kRingBytes / copyrpc::kBlockBytes).charge_max() - 64;
    static constexpr Duration kPatience = seconds(5);               // time that a lost peer has to come back
    static constexpr Duration kLeastPatience = milliseconds(1500);  // for each call: the peer may just be back

    // Makes it. All arguments outlive it. `clients` gets the answers.
    Gateway(copyrpc::Endpoint& endpoint, PeerLinks& links, PeerMail& mail, worker::Worker& worker, ShardHost& clients,
            PeerCounters& counters);
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    // Takes a call to another shard. All that the call refers to stays until it is answered.
    void take(const Call& call, ShardNumber to, Instant now);
    // Makes the peers forget a client that is gone for good. Its calls are answered. Peers that have had calls of it
    // get a message, if need be when they are back.
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
        Instant fails_at{};                // deadline while the peer is not there
        ParsedRequest asked{};             // data offsets in it begin at 0
        NamedData data{};                  // the way and the place of its data
        std::span<std::uint8_t> memory{};  // the client's memory at that place
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
        std::uint32_t promised = 0;         // blocks promised for calls under way
        std::set<std::uint64_t> clients{};  // clients whose calls it has had
        std::deque<std::uint64_t> forgets{};
        std::deque<std::uint64_t> told{};  // forgotten clients; if the peer is lost, it may not know
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
    std::vector<std::uint8_t> draft_ = std::vector<std::uint8_t>(kMostForwardedBytes);  // room to compose a message
};

}  // namespace cairn::fs
