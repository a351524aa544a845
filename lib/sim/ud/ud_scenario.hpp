// Users send datagrams to each other and to multicast groups over a network that loses, doubles, damages, delays and
// reorders. They run out of receive requests and completion queues, change states, end and begin anew, and use outdated
// keys. A hostile peer reads along. Each turn accounts for every datagram that came: it was delivered as it was sent,
// or counted as dropped for the right reason.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/sim/ud/ud_host.hpp"
#include "lib/sim/ud/ud_stranger.hpp"

namespace cairn::sim {

// Counters over all hosts and processes.
struct UdCounters {
    std::uint64_t posted = 0;
    std::uint64_t delivered = 0;
    std::uint64_t delivered_to_groups = 0;
    std::uint64_t looped_back = 0;  // copies that the service made, since a device makes none
    std::uint64_t forged = 0;
    std::uint64_t overruns = 0;        // of completion queues
    std::uint64_t failures = 0;        // of send requests
    std::uint64_t foreign_memory = 0;  // receive requests that named foreign memory
    std::uint64_t flushed = 0;
    std::uint64_t forgotten = 0;  // completions of a queue pair that were unseen when it went to RESET
};

struct UdPlan {
    std::uint32_t path_mtu_bytes = 1024;
    std::size_t stranger = 0;  // the hostile peer's place in the network
    bool loops_groups = false;
    bool small_queues = false;  // completion queues are small
    bool lazy = false;          // users post receive requests late
    bool bold = false;          // users name memory that is not theirs
    bool alone = true;          // nothing else is on the workers, so that they count only datagrams

    [[nodiscard]] static UdPlan from_seed(std::uint64_t seed);
};

class UdScenario final : public Scenario {
public:
    UdScenario(World& world, const UdPlan& plan);

    [[nodiscard]] const UdCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::string text() const override;

    // In ud_scenario.cpp. One worker of each host has all users.
    [[nodiscard]] bool lives_on(const Node& node) const override { return &hosts_[node.host()]->node == &node; }
    void start(Node& node) override;
    void stop(Node& node) override;
    void before_turn(Node& node) override;
    void act(Node& node) override;
    void on_sent(Node& node) override;
    void after_turn(Node& node) override;
    [[nodiscard]] Instant next_act(const Node& node) const override { return hosts_[node.host()]->acts_at; }
    void on_delivery(std::size_t to, const Frame& frame) override;
    void on_heal() override;
    // In ud_workload.cpp and ud_checks.cpp.
    void check_progress() override;
    void on_frame(Node& node, const Frame& frame, bool icrc_ok) override;
    void check_end() override;

private:
    static constexpr std::size_t kGroups = 2;

    // How often a message was sent, and the packet numbers of its copies.
    struct Sent {
        std::uint64_t times = 0;
        std::set<std::uint32_t> psns;
    };
    // A queue pair that exists or existed.
    struct Known {
        std::size_t host = 0;
        Qpn qpn{};
        Qkey qkey{};
    };

    void forge_from(const Frame& frame);
    [[nodiscard]] bool is_own(const UdMessage& message) const;

    // In ud_workload.cpp: the users' actions.
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
    void send_anew(UdHost& host, UdUser& user, const Known& to, std::uint64_t receivers);

    // In ud_checks.cpp: the promises.
    void expect(bool holds, const char* what) { world_.check(holds, what); }
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

    World& world_;
    Random& random_;
    UdPlan plan_;
    UdStranger stranger_;
    Duration to_arrive_;  // the longest time that a new message takes to arrive
    std::uint64_t next_wr_id_ = 0;
    std::array<net::IpAddress, kGroups> groups_;
    std::vector<net::IpAddress> peers_;  // all hosts, then the groups
    std::vector<std::unique_ptr<UdHost>> hosts_;
    std::vector<Known> known_;  // the latest queue pairs
    std::set<Qpn> own_;         // the numbers of all queue pairs that ever existed
    std::map<UdMessage, Sent> sent_;
    UdCounters counters_;
};

// A world with these users only.
class UdWorld final : public World {
public:
    explicit UdWorld(std::uint64_t seed);
    [[nodiscard]] const UdCounters& counters() const noexcept { return users_.counters(); }

private:
    UdScenario users_;
};

}  // namespace cairn::sim
