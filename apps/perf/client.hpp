// The client of cairn-perf. For each size it connects, keeps operations outstanding, measures and disconnects.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "apps/perf/perf_worker.hpp"
#include "lib/telemetry/histogram.hpp"

namespace cairn::perf {

// The result of one size.
struct SizeResult {
    std::uint32_t message_bytes = 0;
    std::uint64_t operations = 0;  // measured
    double seconds = 0;
    telemetry::Histogram latency_ns;
    std::uint64_t resent_packets = 0;
    std::uint64_t checked = 0;  // operations with verified data
    std::uint64_t sent = 0;     // messages sent by an unreliable service; `arrived`: how many of them arrived
    std::uint64_t arrived = 0;
    std::uint64_t back_operations = 0;  // of the server, in a test of both directions
    double back_seconds = 0;
    std::uint32_t unfinished = 0;  // operations that never completed

    // Adds the result that another worker measured at the same time.
    void absorb(const SizeResult& other);
};

class Client final : public PerfWorker {
public:
    Client(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port, const net::IpAddress& peer);
    ~Client() override;

    // Prepares the client. Called once, after open_device().
    Status prepare(Instant now);
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    void absorb(const PerfWorker& other) override;
    [[nodiscard]] std::string json() const override;
    [[nodiscard]] std::string table() const override;

private:
    // Agreeing: the server carries a smaller path MTU, and all tests begin again with it. Ready: other workers still
    // connect.
    enum class Phase : std::uint8_t { Connecting, Agreeing, Ready, Running, Draining, Leaving, Done };
    enum class Stage : std::uint8_t { Idle, Asked, Up, Leaving, Gone };

    // One connection.
    struct Lane {
        std::optional<Channel> channel;
        verbs::ConnectionId id{};
        verbs::DatagramId asked{};  // for datagrams
        Qpn peer{};
        Stage stage = Stage::Idle;
        RemoteMemory remote{};
        std::uint64_t posted = 0;
        std::uint64_t completed = 0;
        std::uint64_t area = 0;          // offset of its messages in our memory
        std::vector<Instant> posted_at;  // by message number, modulo the size, which is a power of two
    };

    [[nodiscard]] bool step(Instant now) override;
    void on_event(const cm::Event& event, Instant now) override;
    void look(Instant now) override;

    void end_measuring(Instant now);
    void enter(Phase phase, Instant now);
    void connect_some(Instant now);
    // Returns whether all workers, or all but `but`, have their connections of this size.
    [[nodiscard]] bool all_connected(std::uint32_t but = 0) const noexcept;
    Status connect(Lane& lane, const Hello& hello, Instant now);
    void disconnect_some(Instant now);
    void on_up(Lane& lane, const cm::PrivateBytes& answer, Instant now);
    void greet(Lane& lane);
    void on_gone(Lane& lane, const cm::PrivateBytes& farewell);
    [[nodiscard]] Lane* find(verbs::ConnectionId id) noexcept;
    [[nodiscard]] std::uint32_t index_of(const Lane& lane) const noexcept {
        return static_cast<std::uint32_t>(&lane - lanes_.data());
    }

    [[nodiscard]] std::string nobody_listens() const;
    // Returns the results. They include the operations that never completed, if the test failed.
    [[nodiscard]] std::vector<SizeResult> final_results() const;

    // client_sizes.cpp
    Status choose_sizes();
    Status start_size(Instant now);
    Status make_lanes();
    void give_up_lanes(Instant now);
    void end_size(Instant now);
    void on_smaller_path_mtu(std::uint32_t path_mtu_bytes);

    // client_datagrams.cpp
    Status ask(Lane& lane, std::span<const std::uint8_t> said, Instant now);
    Status leave_datagrams(Lane& lane, Instant now);
    void ask_for_pass(Instant now);
    void on_pass(const cm::Resolved& resolved);
    [[nodiscard]] bool was_refused(const cm::Resolved& resolved);
    void on_resolved(const cm::Resolved& resolved, Instant now);

    // client_work.cpp
    [[nodiscard]] std::size_t collect(Instant now);
    void collect_replies(Instant now);
    void collect_written(Instant now);
    void collect_back();
    void post_back_receive(std::uint32_t index);
    void give_up_lost(Instant now);
    void complete(Lane& lane, Instant now);
    void verify(const Lane& lane, std::uint64_t message);
    void post_more(Instant now);
    void post(Lane& lane, std::uint32_t index, Instant now);
    void post_receive(Lane& lane, std::uint64_t message);
    [[nodiscard]] bool unreliable() const noexcept { return options().transport != Transport::Rc; }
    [[nodiscard]] verbs::WorkOpcode opcode() const noexcept;
    [[nodiscard]] bool answers_by_message() const noexcept {
        return options().test == Test::Latency && options().operation == Operation::Send;
    }
    [[nodiscard]] bool answers_in_memory() const noexcept {
        return options().test == Test::Latency && options().operation == Operation::Write;
    }
    // Returns whether the server sends, too: each of its messages takes a receive request then.
    [[nodiscard]] bool receives_back() const noexcept {
        return options().both_ways && options().operation == Operation::Send;
    }
    [[nodiscard]] std::span<std::uint8_t> message(const Lane& lane, std::uint64_t number) const noexcept {
        return memory_at(lane.area + layout_.offset(number));
    }
    // Returns the place for the answer to message `number`.
    [[nodiscard]] std::uint64_t answer_offset(const Lane& lane, std::uint64_t number) const noexcept {
        return lane.area + layout_.area_bytes() + layout_.offset(number);
    }
    [[nodiscard]] std::span<std::uint8_t> memory_at(std::uint64_t offset) const noexcept {
        return mr_->bytes().subspan(offset, layout_.bytes);
    }

    net::IpAddress peer_;
    std::uint32_t queue_pairs_;  // of all workers with included results
    std::uint32_t depth_;
    std::unique_ptr<verbs::Ah> way_;    // asks for the neighbour before it is needed
    std::uint32_t path_mtu_bytes_ = 0;  // agreed, or proposed
    std::vector<std::uint32_t> sizes_;
    std::size_t size_at_ = 0;
    std::uint32_t share_;  // operations outstanding on one queue pair
    std::vector<SizeResult> results_;

    // Members of the present size.
    MessageLayout layout_{};
    std::unique_ptr<pmd::HeapBlock> memory_;
    std::unique_ptr<verbs::Mr> mr_;
    std::array<verbs::Completion, 64> done_{};  // completions in hand
    std::unique_ptr<verbs::Cq> sends_;
    std::unique_ptr<verbs::Cq> receives_;
    verbs::SendRequest request_{};  // the request that is being posted
    std::array<verbs::Sge, 1> sges_{};
    std::vector<Lane> lanes_;
    std::unordered_map<std::uint32_t, std::uint32_t> lane_of_;      // by connection
    std::unordered_map<std::uint32_t, std::uint32_t> asked_lanes_;  // by question
    std::optional<verbs::DatagramId> pass_asked_;
    std::optional<std::uint64_t> pass_;  // shows that this host has its address
    Phase phase_ = Phase::Connecting;
    std::uint32_t asked_ = 0;      // lanes that have been asked to come up or to end
    std::uint32_t under_way_ = 0;  // of these, lanes that have not done so yet
    std::uint32_t outstanding_ = 0;
    std::uint32_t turn_ = 0;  // the lane that posts next
    Instant start_at_{};
    Instant measure_from_ = Instant::never();
    Instant measure_to_ = Instant::never();
    Instant progress_at_{};        // time of the last completion
    std::uint64_t posted_ = 0;     // of this size
    std::uint64_t completed_ = 0;  // of all sizes
    std::uint64_t completed_seen_ = 0;
    std::uint64_t resent_before_ = 0;
};

}  // namespace cairn::perf
