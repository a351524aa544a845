// A few hosts with connection managers and restless users, over a network that loses, doubles and delays. Hosts forget
// everything and begin a new life. One seed is one history. Every step checks all promises.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/cm/manager.hpp"
#include "lib/sim/datagram_log.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

// The services of each host: one by its number, one by IP.
constexpr wire::ServiceId kCmService{0xca12};
const wire::ServiceId kCmIpService = wire::ip_service(wire::IpProtocol::Tcp, 7174);

constexpr std::uint8_t kForged = 0xf0;  // each byte of the private data of forged requests

struct CmFaults {
    std::uint32_t loss_per_million = 0;
    std::uint32_t double_per_million = 0;
    std::uint32_t late_per_million = 0;  // the message comes once more, up to 100 ms later
    Duration jitter{};
    std::uint32_t restart_per_million = 0;   // chance at each turn of a host
    std::uint32_t nonsense_per_million = 0;  // chance at each message that made-up ones follow
    std::uint64_t fewest_retries = 15;
    bool slow_users = false;           // users think for seconds
    bool same_queue_pairs = false;     // a new life begins with the queue pair numbers of the last
    std::uint64_t flood_per_turn = 0;  // forged requests: in the name of silent hosts, of no host, or of others
};

// Counters over all hosts and lives.
struct CmWorldCounters {
    std::uint64_t lost = 0;
    std::uint64_t doubled = 0;
    std::uint64_t restarts = 0;
    std::uint64_t asked = 0;
    std::uint64_t established = 0;  // at both ends
    std::uint64_t rejected = 0;
    std::uint64_t unreachable = 0;
    std::uint64_t resolved = 0;
    std::uint64_t forged = 0;  // forged requests
    telemetry::CounterSnapshot<cm::Counter> manager{};
};

class CmWorld {
public:
    explicit CmWorld(std::uint64_t seed);

    // Runs with faults for a while, then without. All users then disconnect and connect once more. Returns the first
    // broken promise; nullopt if all held.
    [[nodiscard]] std::optional<std::string> run();
    [[nodiscard]] const CmWorldCounters& counters() const { return counters_; }
    [[nodiscard]] DatagramLog& log() { return log_; }
    [[nodiscard]] const DatagramLog& log() const { return log_; }
    [[nodiscard]] Instant now() const { return now_; }
    [[nodiscard]] std::string text() const;
    // Returns a number that two runs of one seed share.
    [[nodiscard]] std::uint64_t history() const { return history_; }

private:
    enum class Phase : std::uint8_t { Asked, Requested, Replied, Accepted, Up, Leaving, LeaveAsked, Over };

    // A connection, seen by its user.
    struct Local {
        bool active = false;
        std::uint64_t cookie = 0;
        std::size_t peer = 0;
        Qpn qpn{};
        Psn psn{};
        Phase phase = Phase::Asked;
        Instant act_at = Instant::never();  // time of the user's next action
    };
    struct Node {
        net::IpAddress address{};
        std::unique_ptr<cm::Manager> manager;
        std::uint64_t life = 0;
        std::uint32_t next_qpn = 0;
        std::map<cm::ConnectionId, Local> locals;
        std::set<cm::ConnectionId> forged;  // forged requests that were accepted
        std::set<cm::ConnectionId> gone;    // names of connections that are over, until they are drawn again
        std::uint32_t drawn_again = 0;      // names that were drawn again in this life
        std::map<cm::DatagramId, std::size_t> questions;

        // Takes the name for a new connection. Returns false if that cannot be right.
        [[nodiscard]] bool take_name(cm::ConnectionId id);
    };
    // The actions of both ends of a connection. The private data carries the cookie that names the deal.
    struct Deal {
        std::size_t client = 0;
        std::uint64_t client_life = 0;
        std::uint64_t server_life = 0;  // life of the server that was asked last
        std::uint32_t open_requests = 0;
        bool settled = false;  // established in that life, so not asked again; a refused one may be, much later
        bool refused = false;
        bool accepted = false;
        Qpn accepted_qpn{};
        Psn accepted_psn{};
        bool ready = false;
        bool restarted = false;  // either end restarted since
        bool server_saw_it = false;
        bool server_gave_up = false;
    };
    // The messages from and to an address that none of the hosts has.
    struct Account {
        std::uint64_t asked = 0;
        std::uint64_t sent = 0;
    };
    struct Flying {
        std::size_t to = 0;
        cm::OutMad mad{};
    };

    void choose_faults();
    void start_life(Node& node);
    void step();
    [[nodiscard]] Instant next_time() const;
    [[nodiscard]] bool all_quiet() const;
    bool run_until_quiet(Instant limit);
    void connect_once_more();

    void turn(std::size_t index);
    void connect(std::size_t from, std::size_t to);
    void resolve(std::size_t from, std::size_t to);
    void act(Node& node, cm::ConnectionId id, Local& local);
    void answer(Node& node, cm::ConnectionId id, Local& local);
    void send_all(std::size_t index);
    void send(std::size_t from, const cm::OutMad& mad);
    void make_up(std::size_t from, std::size_t to);
    void flood();
    void forge_request();
    void accept_forged(Node& node, cm::ConnectionId id);
    void log(std::size_t from, const Flying& flying, std::string_view fate);
    [[nodiscard]] std::size_t host_of(const net::IpAddress& address) const;

    void poll_all(std::size_t index);
    void on_event(Node& node, const cm::Requested& event);
    void on_event(Node& node, const cm::Replied& event);
    void on_event(Node& node, const cm::Established& event);
    void on_event(Node& node, const cm::Rejected& event);
    void on_event(Node& node, const cm::Unreachable& event);
    void on_event(Node& node, const cm::DisconnectRequested& event);
    void on_event(Node& node, const cm::Disconnected& event);
    void on_event(Node& node, const cm::Released& event);
    void on_event(Node& node, const cm::DatagramRequested& event);
    void on_event(Node& node, const cm::Resolved& event);
    [[nodiscard]] Local* expect(Node& node, cm::ConnectionId id, std::initializer_list<Phase> phases,
                                const char* event);
    void end(Node& node, Local& local, bool gave_up);
    void forget(Node& node, cm::ConnectionId id);

    void require(bool holds, const std::string& what);
    void note(std::uint64_t value) { history_ = (history_ ^ value) * 0x100000001b3U; }
    [[nodiscard]] Instant soon(Duration at_most) { return now_ + random_.between(Duration{0}, at_most); }

    Random random_;
    CmFaults faults_;
    bool healed_ = false;
    Instant now_{};
    std::uint64_t history_ = 0xcbf29ce484222325U;
    std::optional<std::string> broken_;
    std::vector<Node> nodes_;
    DatagramLog log_;
    std::multimap<Instant, Flying> flying_;
    std::map<net::IpAddress, Account> accounts_;
    Instant flood_at_{};
    std::map<std::uint64_t, Deal> deals_;  // by cookie
    std::uint64_t last_cookie_ = 0;
    std::uint64_t last_life_ = 0;
    std::uint64_t to_connect_ = 0;
    CmWorldCounters counters_;
};

}  // namespace cairn::sim
