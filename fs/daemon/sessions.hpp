// Sessions: the daemon's side of the socket at which clients of this machine connect.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fs/daemon/client_numbers.hpp"
#include "fs/daemon/crowd.hpp"
#include "fs/daemon/shard_door.hpp"
#include "fs/message/hello.hpp"
#include "lib/base/time.hpp"
#include "lib/telemetry/counters.hpp"

namespace cairn::fs {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_SESSION_COUNTERS(X)                                                                                \
    X(Welcomed, "fs_clients_welcomed", "clients that have come")                                                 \
    X(Returned, "fs_clients_returned", "of them, those that have kept their numbers")                            \
    X(Left, "fs_clients_left", "clients that have gone")                                                         \
    X(Channels, "fs_channels_made", "channels that clients were given")                                          \
    X(Buffers, "fs_buffers_made", "clients that were given memory for buffers of their own")                     \
    X(Refused, "fs_clients_refused", "connections that were told why they are refused: the sum of what follows") \
    X(Silent, "fs_refused_silent", "connections that said nothing in time")                                      \
    X(Crowded, "fs_refused_crowded", "connections that had said nothing, and made room for newer ones")          \
    X(Nonsense, "fs_refused_nonsense", "connections with messages of no client of this version")                 \
    X(Full, "fs_refused_full", "clients beyond --max-clients")                                                   \
    X(Share, "fs_refused_share", "clients beyond --max-user-clients")                                            \
    X(Early, "fs_refused_early", "clients that were back before their former connections had ended")             \
    X(OtherShard, "fs_refused_shard", "clients that asked for a channel to a shard that is not here")            \
    X(TooMany, "fs_refused_channels", "clients that asked for more channels than a client has")                  \
    X(Memory, "fs_refused_memory", "channels for which there was no memory")                                     \
    X(Descriptors, "fs_refused_descriptors", "channels for which there was no descriptor")                       \
    X(Breach, "fs_refused_breach", "clients whose channel had what no client writes")                            \
    X(Deaf, "fs_clients_deaf", "clients that were hung up on since they do not read")

CAIRN_DECLARE_COUNTERS(SessionCounter, CAIRN_SESSION_COUNTERS);

struct SessionConfig {
    static constexpr std::uint32_t kMostClients = 4096;
    static constexpr std::uint8_t kChannels = 16;  // of one client, to each shard

    Welcome welcome{};  // sent to all clients; `client` is overwritten
    SipKey key{};       // for the clients' numbers
    std::uint32_t node = 0;
    std::uint32_t nodes = 1;  // number of nodes; all have the key
    std::uint32_t max_clients = 32;
    std::uint32_t max_user_clients = 16;  // for each user except root and the daemon's own
    std::uint32_t own_user = 0;
    std::uint64_t buffer_bytes = std::uint64_t{64} << 20U;  // for one client's own buffers; 0: none
    Duration say_every = seconds(1);                        // least time between lines about clients, to bound the log
    Duration patience = seconds(5);                         // how long a connection may take to send its Hello
    // Makes the answer to a CountersRequest.
    std::function<std::string()> counters_text{};
    // Called with a line for the operator.
    void (*say)(const std::string& line) = nullptr;
};

// One thread uses it. It never waits for a client. It hangs up on clients that send no valid message or do not read.
// The process may be killed at any instant, and then nothing needs to be undone: the kernel ends descriptors and
// memory.
class Sessions {
public:
    // Makes the sessions. The doors are those of welcome.local, in that order. All arguments outlive the sessions.
    Sessions(int listening_fd, NewsBox& news, std::vector<ShardDoor*> doors, const SessionConfig& config);
    Sessions(const Sessions&) = delete;
    Sessions& operator=(const Sessions&) = delete;
    ~Sessions();

    // Serves for `span` and returns true. Returns false at once if `stop_fd` is readable.
    [[nodiscard]] bool serve(int stop_fd, Duration span);

    // Returns the number of clients that are welcome now or are leaving.
    [[nodiscard]] std::size_t clients() const noexcept { return crowd_.count(); }
    [[nodiscard]] const telemetry::CounterSet<SessionCounter>& counters() const noexcept { return counters_; }

private:
    struct Session;
    // A client that has gone. Each of its shards answers twice: once drained, once forgotten.
    struct Leaver {
        std::uint32_t user = 0;
        bool is_drained = false;
        std::size_t awaited = 0;
    };

    void sleep(int stop_fd, Instant until);
    void accept_all();
    void make_room_for_stranger();
    void look_at(Session& session);
    void on_hello(Session& session, std::span<const std::uint8_t> bytes);
    [[nodiscard]] bool judge_room(Session& session);
    void on_request(Session& session, std::span<const std::uint8_t> bytes);
    void on_channel_request(Session& session, const ChannelRequest& request);
    void on_buffers_request(Session& session);
    void on_news(ShardNews& news);
    void on_channel(ShardNews& news);
    void on_leaver(const ShardNews& news);
    void refuse(Session& session, SessionCounter reason, const Error& why);
    void say(const std::string& line);
    void hang_up(Session& session);
    // Returns the shard's place among the doors, or the number of doors if the shard has none.
    [[nodiscard]] std::size_t place_of(std::uint16_t shard) const noexcept {
        const auto& local = config_.welcome.local;
        return static_cast<std::size_t>(std::ranges::find(local, shard) - local.begin());
    }
    [[nodiscard]] std::uint64_t number_for(const Person& person, std::uint64_t wanted);
    [[nodiscard]] Session* session_of(std::uint64_t client) noexcept;

    const int listening_fd_;
    NewsBox& news_;
    const std::vector<ShardDoor*> doors_;
    SessionConfig config_;
    const ClientNumbers numbers_;
    Crowd crowd_;                                     // counts clients that are welcome or are leaving
    std::vector<std::unique_ptr<Session>> sessions_;  // oldest first
    std::map<std::uint64_t, Leaver> leavers_;
    std::vector<pollfd> polled_;
    Instant accept_at_{};  // not before this time, after no descriptor was left
    Instant say_at_{};     // not before this time
    std::uint64_t unsaid_ = 0;
    std::vector<std::uint8_t> room_;
    telemetry::CounterSet<SessionCounter> counters_;
};

}  // namespace cairn::fs
