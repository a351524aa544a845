// The sessions of --system ud: callers find the service, and the server admits them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "apps/rpcbench/ud_road.hpp"
#include "lib/base/sip_hash.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::rpcbench {

struct UdConfig {
    std::uint32_t message_bytes = 32;  // the longest request or answer
    std::uint16_t sessions_max = 64;
    std::uint32_t calls_max = 64;
    Duration peer_timeout = seconds(2);
    std::uint16_t udp_source_port = port::kFirstUdpSourcePort;
    SipKey seed{};  // hard to guess
};

enum class UdEvent : std::uint8_t { Connected, Ended };
using UdCallback = void (*)(void* context, SessionId session, UdEvent event);

struct UdSession {
    enum class State : std::uint8_t { Free, Asking, Open };

    State state = State::Free;
    bool ours = false;        // connect() began it
    std::uint16_t peers = 0;  // the peer's number of it
    Qpn qpn{};                // of the peer
    std::uint64_t token = 0;
    net::IpAddress remote{};
    std::unique_ptr<verbs::Ah> to;
    Instant heard{};  // of a caller; while we ask, the time when we began
    Instant asked{};  // its last Hello

    [[nodiscard]] UdWay way() const noexcept { return {to.get(), qpn}; }
    [[nodiscard]] RawUdMessage head(UdKind kind, std::uint64_t call = 0) const noexcept {
        return {RawUdMessage::kVersion, kind, 0, 0, Be16{peers}, Be16{0}, Be64{token}, Be64{call}};
    }
};

class UdSessions {
public:
    // Keeps the arguments. All of them outlive the object.
    UdSessions(const UdConfig& config, verbs::Device& device, connections::Home& home, UdRoad& road,
               UdStatistics& statistics);

    // See UdEndpoint.
    Status listen(std::uint16_t port);
    void set_callback(UdCallback callback, void* context) noexcept {
        callback_ = callback;
        context_ = context;
    }
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now);
    void disconnect(std::uint16_t number) noexcept;

    [[nodiscard]] UdSession* open_session(std::uint16_t number) noexcept {
        return number < sessions_.size() && sessions_[number].state == UdSession::State::Open ? &sessions_[number]
                                                                                              : nullptr;
    }
    // Finds the session of a message by its token. Returns nullptr for an unknown peer, and counts it.
    [[nodiscard]] UdSession* find(const UdArrival& arrival, Instant now) noexcept;
    // Takes a message that is neither a request nor an answer. There is room to send one.
    void on_control(const UdArrival& arrival, Instant now) noexcept;
    // Sends Hellos as far as there is room. Ends sessions of ours if their peer does not answer; open ones only if
    // calls are under way. Called every few milliseconds.
    void look(bool calls_pending, Instant now) noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return open_; }

private:
    void hear_directory() noexcept;
    void say_hello(UdSession& session, Instant now) noexcept;
    [[nodiscard]] std::uint64_t token_for(const UdArrival& hello, const net::IpAddress& from) const noexcept;
    [[nodiscard]] std::uint16_t number_of(const UdSession& session) const noexcept {
        return static_cast<std::uint16_t>(&session - sessions_.data());
    }
    void end(UdSession& session, bool lost) noexcept;
    void on_hello(const UdArrival& arrival, Instant now) noexcept;
    void on_reply(const UdArrival& arrival, Instant now) noexcept;
    [[nodiscard]] UdSession* session_for(const UdArrival& hello, const net::IpAddress& from, Instant now) noexcept;

    const UdConfig& config_;
    verbs::Device& device_;
    UdRoad& road_;
    UdStatistics& statistics_;
    verbs::Connector directory_;
    std::optional<verbs::DatagramId> question_;
    std::optional<Qpn> server_;  // the queue pair of our peer's service
    bool refused_ = false;       // our peer does not serve
    Instant server_heard_{};     // over any session: each has few calls, and one that was lost is no sign
    std::vector<UdSession> sessions_;
    std::size_t open_ = 0;  // sessions that are not free
    UdCallback callback_ = nullptr;
    void* context_ = nullptr;
};

}  // namespace cairn::rpcbench
