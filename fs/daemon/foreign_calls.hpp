// ForeignCalls: calls of other machines' clients, which their gateways have sent to this shard.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "fs/daemon/call_buffers.hpp"
#include "fs/daemon/client_numbers.hpp"
#include "fs/daemon/peer_links.hpp"
#include "fs/message/forwarded.hpp"
#include "fs/shard/shard.hpp"

namespace cairn::fs {

// Each call has a buffer of its own for its data. The data are fetched before the shard gets the call, and delivered
// before its answer. If a gateway is lost, the answers to its calls are dropped, but the effects of the calls stay. If
// a gateway stays away, its clients are forgotten.
class ForeignCalls {
public:
    static constexpr std::uint32_t kMostCalls = 128;  // of one peer, those of its gateway's earlier life included
    static constexpr Duration kGrace = seconds(10);   // for clients whose gateway is gone or has restarted

    // Makes it. All arguments outlive it.
    ForeignCalls(copyrpc::Endpoint& endpoint, PeerLinks& links, worker::Worker& worker, PeerCounters& counters);
    ForeignCalls(const ForeignCalls&) = delete;
    ForeignCalls& operator=(const ForeignCalls&) = delete;

    void on_found(ShardNumber peer, std::uint64_t life, Instant now);
    void on_lost(ShardNumber peer, Instant now);

    // Hands the shard the calls that have come, and the clients that have gone. Called within a turn of the shard.
    // `token_of` makes a call's token of its number.
    template <class TokenOf>
    void give(Shard& shard, Instant now, const TokenOf& token_of) {
        while (!ready_.empty()) {
            const std::uint32_t number = ready_.front();
            ready_.pop_front();
            shard.take(begin(number, token_of(number)));
        }
        for (const std::uint64_t client : take_leavers(now)) {
            shard.forget(client);
        }
    }
    void answer(std::uint32_t number, std::span<const std::uint8_t> bytes);
    [[nodiscard]] Instant next_deadline() const noexcept;
    // True if the shard has a call that it has not answered.
    [[nodiscard]] bool is_unanswered() const noexcept { return with_shard_ != 0; }

private:
    enum class Step : std::uint8_t { Behind, Fetching, Ready, WithShard, Delivering };
    struct Foreign {
        ForeignCalls* calls = nullptr;
        std::uint32_t number = 0;
        ShardNumber from = 0;
        Step step = Step::Ready;
        bool is_orphan = false;  // the answer is not awaited any more
        rpc::KeptRequest kept{};
        std::vector<std::uint8_t> message{};
        ParsedForward parsed{};  // refers to `message`
        std::vector<std::uint32_t> groups{};
        CallBuffers::Buffer data{};
        std::vector<std::uint8_t> answer{};
    };
    struct Client {
        ShardNumber from = 0;
        Instant leaves_at = Instant::never();
    };
    struct Gate {
        std::uint64_t life = 0;
        std::uint32_t calls = 0;
    };

    void on_call(const copyrpc::Request& request);
    void on_forget(const copyrpc::Request& request);
    [[nodiscard]] std::optional<ShardNumber> proven(const copyrpc::Request& request);
    void start(Foreign& call);
    void fetch(Foreign& call);
    void deliver(Foreign& call, std::uint32_t bytes);
    void respond(Foreign& call, std::uint32_t read);
    void end(Foreign& call);
    [[nodiscard]] Call begin(std::uint32_t number, CallToken token);
    [[nodiscard]] std::vector<std::uint64_t> take_leavers(Instant now);
    [[nodiscard]] bool has_calls(std::uint64_t client) const noexcept;
    static void on_fetched(void* context, const rpc::CallResult& result);
    static void on_delivered(void* context, const rpc::CallResult& result);

    copyrpc::Endpoint& endpoint_;
    PeerLinks& links_;
    worker::Worker& worker_;
    PeerCounters& counters_;
    CallBuffers buffers_;
    std::map<std::uint32_t, std::unique_ptr<Foreign>> calls_;
    std::deque<std::uint32_t> ready_;
    std::map<std::uint64_t, Client> clients_;
    std::vector<std::uint64_t> leaving_;
    std::vector<Gate> gates_;  // by shard
    std::uint32_t last_ = 0;
    std::uint32_t with_shard_ = 0;
};

}  // namespace cairn::fs
