// Hosts whose users send datagrams to each other and to multicast groups over a network that loses, doubles, damages,
// delays and reorders; they run out of receive requests and completion queues, change states, end and begin anew, use
// keys that are out of date. Strangers read along. From one seed, in virtual time; each turn every datagram that came
// is accounted for: delivered as it was sent, or counted as dropped for the right reason.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/ud_host.hpp"
#include "tests/sim/ud_stranger.hpp"

namespace cairn::sim {

// What happened, over all hosts and processes.
struct UdWorldCounters {
    std::uint64_t posted = 0;
    std::uint64_t delivered = 0;
    std::uint64_t delivered_to_groups = 0;
    std::uint64_t looped_back = 0;  // by the service, as a device does not
    std::uint64_t forged = 0;
    std::uint64_t restarts = 0;
    std::uint64_t overruns = 0;        // of completion queues
    std::uint64_t failures = 0;        // of send requests
    std::uint64_t foreign_memory = 0;  // that receive requests named
    std::uint64_t flushed = 0;
    std::uint64_t forgotten = 0;  // completions that a queue pair left unseen when it went to RESET
    std::uint64_t refused = 0;    // packets that a full ring did not take
    std::uint64_t unheard = 0;    // frames that found no buffer
    telemetry::CounterSnapshot<roce::Drop> drops{};
};

class UdWorld {
public:
    explicit UdWorld(std::uint64_t seed);
    UdWorld(const UdWorld&) = delete;  // its network points to it
    UdWorld& operator=(const UdWorld&) = delete;

    // Before run(): who is told the fate of every frame.
    void set_witness(Network::Witness witness) { network_.set_witness(std::move(witness)); }
    // Faults for a while, then none, and everybody sends to everybody once more. What broke, if anything did.
    [[nodiscard]] std::optional<std::string> run();

    [[nodiscard]] const Network& network() const noexcept { return network_; }
    [[nodiscard]] Instant now() const noexcept { return now_; }
    [[nodiscard]] const UdWorldCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::string text() const;

private:
    static constexpr std::size_t kGroups = 2;

    // What someone sent, so often, in packets of these numbers.
    struct Sent {
        std::uint64_t times = 0;
        std::set<std::uint32_t> psns;
    };
    // A queue pair that is or was.
    struct Known {
        std::size_t host = 0;
        Qpn qpn{};
        Qkey qkey{};
    };

    // ud_world.cpp: time, processes, harm
    void start(UdHost& host);
    void stop(UdHost& host);
    void harm(UdHost& host);
    void partition(UdHost& host, bool apart);
    void heal();
    void forge_from(const Frame& frame);
    void turn(UdHost& host);
    void on_arrived(UdHost& host);
    void on_sent(UdHost& host);
    void run_until(Instant end);
    [[nodiscard]] Instant next_event() const;
    [[nodiscard]] Instant soon(Duration every);

    // ud_workload.cpp: what users do
    void act(UdHost& host);
    void make_queues(UdHost& host);
    void make_user(UdHost& host);
    void forget_requests(UdHost& host, UdUser& user);
    void end_user(UdHost& host, UdUser& user);
    void mend(UdHost& host);
    void bring_up(UdHost& host, UdUser& user);
    void change_state(UdHost& host, UdUser& user);
    void modify(UdHost& host, UdUser& user, verbs::QpState to);
    void change_membership(UdHost& host, UdUser& user);
    void post_receives(UdHost& host);
    void post_receive(UdHost& host, UdUser* user, UdQueues& queues);
    void post_somewhere(UdHost& host, UdUser& user);
    void post(UdHost& host, UdUser& user, const Known& to);
    void write_message(UdHost& host, UdUser& user, const Known& to, UdPending& made);
    void send_anew();
    void send_anew(UdHost& host, UdUser& user, const Known& to, std::uint64_t receivers);

    // ud_checks.cpp: what must hold
    void expect(bool holds, const char* what);
    void on_frame(UdHost& host, const Frame& frame, bool icrc_ok);
    [[nodiscard]] bool is_member(const UdUser& user, const net::IpAddress& group) const;
    void reach(UdHost& host, UdUser& user, const UdMessage& message, const Grh& grh);
    void begin_account(UdHost& host);
    void settle_account(UdHost& host);
    void heed_events(UdHost& host, bool receiving);
    void take_receives(UdHost& host);
    void on_received(UdHost& host, UdUser& user, const verbs::Completion& got);
    void on_success(UdHost& host, UdUser& user, const UdPlace& place, const verbs::Completion& got);
    void take_sends(UdHost& host);
    void on_sent(UdHost& host, UdUser& user, const verbs::Completion& got);
    void loop_back(UdHost& host, const UdMessage& message);
    void reset_one_unseen(UdHost& host);
    void check_states(UdHost& host);
    void check_end();

    std::uint64_t seed_;
    Random random_;
    std::uint32_t path_mtu_bytes_;
    FaultMix mix_;
    Network network_;
    UdStranger stranger_;
    Instant now_{};
    bool loops_groups_ = false;
    bool small_queues_ = false;  // of completions
    bool lazy_ = false;          // users post receive requests late
    bool bold_ = false;          // and name memory that is not theirs
    bool healed_ = false;
    std::uint64_t next_wr_id_ = 0;
    std::array<net::IpAddress, kGroups> groups_;
    std::vector<net::IpAddress> peers_;  // all hosts, then the groups
    std::vector<std::unique_ptr<UdHost>> hosts_;
    std::vector<Known> known_;  // the last of them
    std::map<UdMessage, Sent> sent_;
    UdWorldCounters counters_;
    std::optional<std::string> broken_;
};

}  // namespace cairn::sim
