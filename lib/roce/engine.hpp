// Engine: the connections of one worker. Finds the queue pair of each packet, lets all send in turn, keeps deadlines.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/secret_numbers.hpp"
#include "lib/roce/attached_regions.hpp"
#include "lib/roce/context_cache.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/timing_wheel.hpp"
#include "lib/roce/qp/turn.hpp"
#include "lib/roce/rc/queue_pair.hpp"
#include "lib/roce/send/drops.hpp"
#include "lib/roce/send/sender.hpp"
#include "lib/roce/ud/mux.hpp"
#include "lib/roce/ud/queue_pair.hpp"
#include "lib/wire/drops.hpp"

namespace cairn::roce {

// Returns the largest path MTU that the port carries with the longest headers.
[[nodiscard]] std::uint32_t largest_path_mtu(const port::Port& port) noexcept;

// Does no I/O except through the port, reads no clock, and allocates only when queue pairs and regions are made. The
// worker that owns the port drives it: on_packets() and on_timeout() with the received packets, posts, then transmit().
//
// Payloads that the port can send from where they lie are not copied. Such a tail is read no later than the packet
// leaves, packets leave in order, and a packet that is sent again is always copied. So the engine no longer reads the
// memory of a request when the user sees its completion. A queue pair may stop, or a region end, with packets still
// waiting. These are settled before the engine returns to its caller, and the caller learns of the end no sooner.
// Requests of unreliable connections complete before their packets leave, so their payloads are copied.
//
// Two turns further apart than kOwnPause are a pause of the worker: it was preempted or asleep, which looks the same.
// Answers that came during a pause may lie unread, and round trips across it are not the network's. So a timer that
// rings after a pause is put off by kRtoMin, once for each time that it is armed. Of two measurements in a row one at
// most is ignored. So a worker that sleeps each time notices a loss that much later, and learns its peers' round trips
// from every second answer.
class Engine {
public:
    // The engine's part of a queue pair. It stays where it is until it is destroyed.
    struct RcQp : Turn {
        RcQp(Qpn qpn, Pd pd, const QpCapacity& capacity, const rc::QpContext& context, const XrcTarget& target)
            : Turn(Kind::Connection), pair(qpn, pd, capacity, context, target) {}

        port::Path* path = nullptr;  // to its peer, pinned; nullptr until modify() gave one
        Instant timer_at = Instant::never();
        TimingWheelHandle timer{};
        QpRingLink<RcQp> answers{};  // in the list of queue pairs whose peers wait for a short answer
        bool stopped = false;        // in ERR, and none of its packets waits in the sender
        bool put_off = false;        // its acknowledgement is put off to the next turn
        bool sent_in_place = false;  // some packets, since it was made
        rc::QueuePair pair;          // last: each packet needs the members before it
    };
    // All outlive the queue pair. Without shared receives it has its own. `writes` learns of a peer's WRITEs.
    struct RcQueues {
        CompletionQueue& sends;
        CompletionQueue& receives;
        ReceiveQueue* shared_receives = nullptr;
        EventSink* writes = nullptr;
    };

    // Makes an engine. All arguments outlive it. `datagrams` uses the same port as `sender`.
    Engine(UdMux& datagrams, Sender& sender, const EngineConfig& config, Instant now);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    // Creates a connection's queue pair. Errors: no such domain, too many queue pairs, no number left.
    Result<RcQp*> create_rc(Pd pd, const QpCapacity& capacity, const RcQueues& queues);
    // Creates an XRC target, which has no protection domain and no queues of its own. Errors: as create_rc().
    Result<RcQp*> create_xrc_target(Xrcd domain);
    void destroy_rc(RcQp& qp) noexcept;
    // As create_rc(), for datagrams of the port's largest path MTU. Their service limits the number.
    Result<UdQueuePair*> create_ud(Pd pd, const QpCapacity& capacity, const RcQueues& queues);
    void destroy_ud(UdQueuePair& qp) noexcept;
    // As rc::QueuePair::modify(). `path` leads to the peer if the attribute Path is among `which`. Also returns
    // BadValue for a path MTU that the port does not carry.
    [[nodiscard]] std::optional<ModifyRefusal> modify(RcQp& qp, QpState to, AttributeSet which,
                                                      const QpAttributes& values, port::Path* path = nullptr) noexcept;

    // As the functions of the memory table, which queue pairs use. The port decides if memory is sendable. Once its
    // region is destroyed or registered anew with other memory, the memory is neither read nor attached to the port.
    [[nodiscard]] Pd create_pd() { return memory_.create_pd(); }
    [[nodiscard]] bool destroy_pd(Pd pd) noexcept { return memory_.destroy_pd(pd); }
    Result<Rkey> register_region(const RegionRequest& request);
    Result<Rkey> reregister_region(Rkey key, const RegionChange& change);
    bool destroy_region(Rkey key) noexcept;
    Result<Rkey> create_window(Pd pd, WindowType type) { return memory_.create_window(pd, type); }
    bool destroy_window(Rkey key) noexcept { return memory_.destroy_window(key); }
    [[nodiscard]] const MemoryTable& memory() const noexcept { return memory_; }
    // Returns the XRC domains, and the receive queues by number.
    [[nodiscard]] XrcTable& xrc() noexcept { return xrc_; }
    // Returns true if a target receives a message into a request of the queue. Looks at all queue pairs.
    [[nodiscard]] bool receives_into(Srqn srqn) const noexcept;

    // Takes the packets that the port received: datagrams go to their service, packets of connections to their queue
    // pairs. All buffers are taken.
    void on_packets(std::span<port::PacketRef> burst, Instant now) noexcept;
    // Does the work that is due.
    void on_timeout(Instant now) noexcept { is_used_ ? ring_timers(now) : void(); }
    // Notes that `qp` may have something to send. Posts go to the queue pairs themselves.
    void wake(RcQp& qp) noexcept;
    void wake(UdQueuePair& qp) noexcept { waiting_.push(qp); }

    // Gives the sender a few packets of each queue pair in turn, connections and datagrams alike. Some may be left: see
    // next_deadline(). Short packets that peers wait for (acknowledgements, NAKs, notifications) find room in the
    // sender even while the port takes less than there is.
    void transmit(Instant now) noexcept {
        if (is_used_) {
            transmit_some(now);
        }
    }
    // The work that is left for transmit(). A few acknowledgements may wait for a moment for packets to leave with.
    enum class Owed : std::uint8_t { Nothing, Acknowledgements, More };
    [[nodiscard]] Owed owed() const noexcept;
    // Returns when on_timeout() or transmit() has something to do; a past time means at once.
    [[nodiscard]] Instant next_deadline() const noexcept;

    [[nodiscard]] std::uint32_t queue_pairs() const noexcept { return count_; }
    [[nodiscard]] std::uint32_t held_packets() const noexcept { return held_.in_use(); }
    [[nodiscard]] UdMux& datagrams() noexcept { return datagrams_; }
    [[nodiscard]] Sender& sender() noexcept { return sender_; }
    [[nodiscard]] const telemetry::CounterSet<Drop>& drops() const noexcept { return drops_; }
    [[nodiscard]] const telemetry::CounterSet<wire::Drop>& wire_drops() const noexcept { return wire_drops_; }
    [[nodiscard]] const telemetry::CounterSet<EngineCounter>& counters() const noexcept { return counters_; }
    [[nodiscard]] const rc::RcCounters& rc_counters() const noexcept { return rc_counters_; }
    // Returns a number that cannot be guessed from the numbers before it.
    [[nodiscard]] std::uint64_t unguessable() noexcept { return numbers_.next(); }

private:
    [[nodiscard]] std::size_t place_of(Qpn qpn) const noexcept { return (qpn.value >> owner_bits_) & place_mask_; }
    [[nodiscard]] RcQp* find(Qpn qpn) const noexcept {
        RcQp* const qp = table_[place_of(qpn)].get();
        return qp != nullptr && qp->pair.qpn() == qpn ? qp : nullptr;
    }
    void ring_timers(Instant now) noexcept;
    void transmit_some(Instant now) noexcept;
    [[nodiscard]] std::optional<Qpn> next_qpn(Turn::Kind whose) noexcept;
    [[nodiscard]] Result<RcQp*> add_rc(Pd pd, const QpCapacity& capacity, rc::QpContext context,
                                       const XrcTarget& target = {});
    void fetch_queue_pairs(std::span<const port::PacketRef> burst) const noexcept;
    void take_burst(std::span<port::PacketRef> burst, Instant now) noexcept;
    [[nodiscard]] RcQp* judge(const port::PacketRef& packet, wire::Packet& parsed) noexcept;
    void drop(Drop reason) noexcept { drops_.count(reason); }
    void after_input(RcQp& qp, Instant now) noexcept;
    void return_held() noexcept;
    void stop(RcQp& qp) noexcept;
    void settle_ended() noexcept;
    void copy_acknowledged(const RcQp& qp) noexcept;
    void keep_deadline(RcQp& qp, Instant now) noexcept;
    void set_path(RcQp& qp, port::Path* path) noexcept;
    void give_turns(Instant now) noexcept;
    void answer_peers(Instant now) noexcept;
    void take_turn(RcQp& qp, Instant now) noexcept;
    [[nodiscard]] bool send_some(RcQp& qp, Instant now) noexcept;
    [[nodiscard]] bool acknowledge(RcQp& qp, bool sent_requests, Instant now) noexcept;
    void send(const port::PacketRef& buffer, const rc::OutPacket& packet, RcQp& qp, Instant now) noexcept;

    static constexpr std::size_t kBurst = 64;
    UdMux& datagrams_;
    Sender& sender_;
    const std::uint32_t max_queue_pairs_;
    const std::uint8_t owner_bits_;
    const std::uint32_t owner_;
    const bool batches_;             // the port sends equal packets as one
    const double link_bytes_per_s_;  // 0: no congestion control
    SecretNumbers numbers_;
    std::uint32_t next_number_;  // of a queue pair, owner_bits_ taken off
    std::uint32_t place_mask_;
    std::uint32_t count_ = 0;
    bool is_used_ = false;  // there are queue pairs, or there were before this turn
    MemoryTable memory_;
    AttachedRegions attached_;
    XrcTable xrc_;
    rc::RcCounters rc_counters_;
    StallWatch turns_{kOwnPause};
    rc::HeldPackets held_;                      // early packets; their buffers go back in transmit()
    std::vector<std::unique_ptr<RcQp>> table_;  // by number: numbers in a row have places of their own
    QpRing<Turn> waiting_;                      // may have something to send
    QpRing<RcQp, &RcQp::answers> answering_;    // owe a short answer, and perhaps more
    std::vector<std::unique_ptr<UdQueuePair>> datagram_pairs_;
    TimingWheel<RcQp*> timers_;
    bool stopped_ = false;     // some queue pair has, and its packets may wait
    bool holds_back_ = false;  // when the last packets came, packets of earlier turns had not left
    rc::OutPacket out_{};      // the packet being sent
    std::array<port::PacketRef, kBurst> datagram_packets_{};
    telemetry::CounterSet<Drop> drops_;
    telemetry::CounterSet<wire::Drop> wire_drops_;
    telemetry::CounterSet<EngineCounter> counters_;
    ContextCache contexts_;
};

}  // namespace cairn::roce
