// The requests between the users of two connected queue pairs, and their required results. Each message comes once, in
// order and with its bytes. Each WRITE, READ and atomic is executed once. Completions come in the order of posting.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lib/sim/verbs/verbs_datagrams.hpp"

namespace cairn::sim {

// Counters over all hosts and processes.
struct VerbsCounters {
    std::uint64_t asked = 0;
    std::uint64_t established = 0;  // at both ends
    std::uint64_t elsewhere = 0;    // of these, on workers that have no queue pair 1
    std::uint64_t rejected = 0;
    std::uint64_t unreachable = 0;
    std::uint64_t abandoned = 0;
    std::uint64_t refused = 0;
    std::uint64_t left = 0;    // connections ended by disconnect()
    std::uint64_t broken = 0;  // connections with a peer that did not answer
    std::uint64_t not_ready = 0;
    std::uint64_t closed = 0;    // hosts that ended everything
    std::uint64_t messages = 0;  // received
    std::uint64_t shared = 0;    // of these, by shared receive queues
    std::uint64_t writes = 0;
    std::uint64_t reads = 0;
    std::uint64_t atomics = 0;
    std::uint64_t flushed = 0;
    std::uint64_t requests = 0;
    // Counters of processes that ended.
    telemetry::CounterSnapshot<roce::rc::RcCounter> transport{};
    telemetry::CounterSnapshot<cm::Counter> manager{};

    // Returns the number of requests that failed.
    [[nodiscard]] std::uint64_t failed() const noexcept { return flushed + broken + not_ready; }
    friend bool operator==(const VerbsCounters&, const VerbsCounters&) = default;
};

class VerbsTraffic {
public:
    using Hosts = std::vector<std::unique_ptr<VerbsHost>>;

    // Keeps all arguments, which outlive the traffic.
    VerbsTraffic(World& world, Hosts& hosts, VerbsEnds& ends, VerbsDatagrams& datagrams, VerbsCounters& counters)
        : world_(world),
          random_(world.random()),
          hosts_(hosts),
          ends_(ends),
          datagrams_(datagrams),
          counters_(counters) {}

    // Posts a few requests of any kind. The connection was established.
    void post_some(VerbsEnd& end);
    // Posts a signalled SEND if there is room.
    void post_probe(VerbsEnd& end);
    // Post receive requests. `lazy`: perhaps fewer than there is room for.
    void post_receives(VerbsEnd& end, bool lazy);
    void post_shared_receives(VerbsHost& host, bool lazy);

    // Takes the completions of the host's queues and checks them.
    void take_completions(VerbsHost& host);
    // Checks that the end's target is as its peer's requests must have left it.
    void check_target(VerbsEnd& end);
    // Checks that nothing of the end is left. Its queue pair is in ERR or RESET and ends next.
    void check_over(VerbsEnd& end);

private:
    void expect(bool holds, std::string_view what, const VerbsEnd& end) {
        world_.check(holds, what, &hosts_[end.host]->node);
    }
    [[nodiscard]] VerbsHost& host_of(const VerbsEnd& end) { return *hosts_[end.host]; }
    [[nodiscard]] std::uint8_t* landing_of(const VerbsEnd& end, const VerbsWork& work) {
        return host_of(end).slot_at(end, VerbsHost::kLandings + work.landing * VerbsHost::kMostBytes);
    }
    // Returns whether the end's memory still belongs to this connection.
    [[nodiscard]] bool has_slot(const VerbsEnd* end) const { return end != nullptr && end->stage != VerbsStage::Over; }

    void post(VerbsEnd& end, verbs::WorkOpcode opcode, std::uint32_t bytes);
    [[nodiscard]] std::uint32_t choose_bytes(const VerbsEnd& end);
    [[nodiscard]] bool find_room(const VerbsEnd& end, VerbsWork& work);
    void aim(const VerbsEnd& end, VerbsWork& work, verbs::SendRequest& request);
    void keep(VerbsEnd& end, const VerbsWork& work, const verbs::SendRequest& request);

    [[nodiscard]] std::array<verbs::Sge, 2> split_at(std::uint64_t address, Lkey lkey);
    [[nodiscard]] bool is_put_off(bool lazy) { return lazy && !random_.chance(kMillion / 30); }
    void on_received(VerbsEnd& end, const verbs::Completion& got);
    [[nodiscard]] std::uint8_t* take_cell(VerbsEnd& end, std::uint64_t wr_id);
    void on_message(VerbsEnd& end, const verbs::Completion& got, const std::uint8_t* cell);
    void on_sent(VerbsEnd& end, const verbs::Completion& got);
    void on_done(VerbsEnd& end, const VerbsWork& work);
    void on_failed(VerbsEnd& end, const VerbsWork& work, verbs::CompletionStatus status);
    void reuse_memory(VerbsEnd& end, const VerbsWork& work);
    void check_word(VerbsEnd& end, std::size_t word);

    World& world_;
    Random& random_;
    Hosts& hosts_;
    VerbsEnds& ends_;
    VerbsDatagrams& datagrams_;  // datagrams complete into the same queues
    VerbsCounters& counters_;
    std::uint64_t next_wr_id_ = 0;
};

}  // namespace cairn::sim
