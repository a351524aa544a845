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

// That the port carries, with the longest headers.
[[nodiscard]] std::uint32_t largest_path_mtu(const port::Port& port) noexcept;

// No I/O but through the port, no clock, no allocation but where queue pairs and regions are made. Driven by the worker
// that owns the port: on_packets() and on_timeout() with what came, posts, then transmit().
//
// Payloads that the port can send from where they lie are not copied. Such a tail is read no later than the packet
// leaves, packets leave in order, and what is sent again is always copied. So the engine does not read the memory of a
// request any more when the user sees its completion. Where a queue pair stops, or a region ends, with packets still
// waiting, these are settled before the engine returns to its caller, and the caller learns it no sooner. Requests of
// unreliable connections complete before their packets leave, so their payloads are copied.
//
// Two turns further apart than kOwnPause are a pause of the worker: preempted, or asleep, which looks the same.
// What its peers answered meanwhile may lie unread, and round trips are not the network's: a timer that rings behind a
// pause is put off by kRtoMin, once for each time that it is armed, and of two measurements in a row one at most is
// ignored. So a worker that sleeps each time notices a loss that much later, and learns how long its peers take from
// every second answer.
class Engine {
public:
    // What a queue pair is to the engine; stays where it is until it is destroyed.
    struct RcQp : Turn {
        RcQp(Qpn qpn, Pd pd, const QpCapacity& capacity, const rc::QpContext& context, const XrcTarget& target)
            : Turn(Kind::Connection), pair(qpn, pd, capacity, context, target) {}

        port::Path* path = nullptr;  // to its peer, pinned; nullptr until modify() gave one
        Instant timer_at = Instant::never();
        TimingWheelHandle timer{};
        QpRingLink<RcQp> answers{};  // in the list of queue pairs whose peers wait for a short answer
        bool stopped = false;        // in ERR, and nothing of it waits in the sender
        bool put_off = false;        // its acknowledgement, to the next turn
        bool sent_in_place = false;  // some packets, ever
        rc::QueuePair pair;          // last: each packet needs what lies in front of it
    };
    // All of them outlive the queue pair. No shared receive queue: it has its own. `writes` is told of a peer's WRITEs.
    struct RcQueues {
        CompletionQueue& sends;
        CompletionQueue& receives;
        ReceiveQueue* shared_receives = nullptr;
        EventSink* writes = nullptr;
    };

    // All of them outlive the engine. `datagrams` uses the same port as `sender`.
    Engine(UdMux& datagrams, Sender& sender, const EngineConfig& config, Instant now);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    // Errors: no such domain, as many queue pairs as there may be, no number left.
    Result<RcQp*> create_rc(Pd pd, const QpCapacity& capacity, const RcQueues& queues);
    // An XRC target: it has no protection domain and no queues of its own. Errors: as many queue pairs as there may be.
    Result<RcQp*> create_xrc_target(Xrcd domain);
    void destroy_rc(RcQp& qp) noexcept;
    // A queue pair of datagrams, of the port's largest path MTU; as many as the service has. Errors: likewise.
    Result<UdQueuePair*> create_ud(Pd pd, const QpCapacity& capacity, const RcQueues& queues);
    void destroy_ud(UdQueuePair& qp) noexcept;
    // As rc::QueuePair::modify(). `path`, when the attribute Path is among `which`, leads to the peer. BadValue also
    // for a path MTU that the port does not carry.
    [[nodiscard]] std::optional<ModifyRefusal> modify(RcQp& qp, QpState to, AttributeSet which,
                                                      const QpAttributes& values, port::Path* path = nullptr) noexcept;

    // As the functions of the memory table, which queue pairs use. The port says whether memory is sendable. Once its
    // region is destroyed or registered anew with other memory, the memory is neither read nor attached to the port.
    [[nodiscard]] Pd create_pd() { return memory_.create_pd(); }
    [[nodiscard]] bool destroy_pd(Pd pd) noexcept { return memory_.destroy_pd(pd); }
    Result<Rkey> register_region(const RegionRequest& request);
    Result<Rkey> reregister_region(Rkey key, const RegionChange& change);
    bool destroy_region(Rkey key) noexcept;
    Result<Rkey> create_window(Pd pd, WindowType type) { return memory_.create_window(pd, type); }
    bool destroy_window(Rkey key) noexcept { return memory_.destroy_window(key); }
    [[nodiscard]] const MemoryTable& memory() const noexcept { return memory_; }
    // Of XRC: domains, and receive queues by number.
    [[nodiscard]] XrcTable& xrc() noexcept { return xrc_; }
    // A target has taken a request of it for a message that has not ended. Looks at all queue pairs.
    [[nodiscard]] bool receives_into(Srqn srqn) const noexcept;

    // What the port received: datagrams go to their service, packets of connections to their queue pairs. All buffers
    // are taken.
    void on_packets(std::span<port::PacketRef> burst, Instant now) noexcept;
    // Does what is due.
    void on_timeout(Instant now) noexcept { is_used_ ? ring_timers(now) : void(); }
    // Posts go to the queue pairs themselves; says that `qp` may now have something to send.
    void wake(RcQp& qp) noexcept;
    void wake(UdQueuePair& qp) noexcept { waiting_.push(qp); }

    // Gives the sender what queue pairs have, a few packets of each in turn, connections and datagrams alike. Some may
    // be left: see next_deadline(). What peers wait for and is short (acknowledgements, NAKs, notifications) finds room
    // in the sender also while the port takes less than there is.
    void transmit(Instant now) noexcept {
        if (is_used_) {
            transmit_some(now);
        }
    }
    // What there is for transmit(). A few acknowledgements may wait for a moment for what they leave with.
    enum class Owed : std::uint8_t { Nothing, Acknowledgements, More };
    [[nodiscard]] Owed owed() const noexcept;
    // When on_timeout() or transmit() has something to do; the past when at once.
    [[nodiscard]] Instant next_deadline() const noexcept;

    [[nodiscard]] std::uint32_t queue_pairs() const noexcept { return count_; }
    [[nodiscard]] std::uint32_t held_packets() const noexcept { return held_.in_use(); }
    [[nodiscard]] UdMux& datagrams() noexcept { return datagrams_; }
    [[nodiscard]] Sender& sender() noexcept { return sender_; }
    [[nodiscard]] const telemetry::CounterSet<Drop>& drops() const noexcept { return drops_; }
    [[nodiscard]] const telemetry::CounterSet<wire::Drop>& wire_drops() const noexcept { return wire_drops_; }
    [[nodiscard]] const telemetry::CounterSet<EngineCounter>& counters() const noexcept { return counters_; }
    [[nodiscard]] const rc::RcCounters& rc_counters() const noexcept { return rc_counters_; }
    // Returns a number that can not be guessed from the numbers before it.
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
    bool stopped_ = false;     // a queue pair has, and packets of it may wait
    bool holds_back_ = false;  // as the last packets came, packets of turns before had not left
    rc::OutPacket out_{};      // being sent
    std::array<port::PacketRef, kBurst> datagram_packets_{};
    telemetry::CounterSet<Drop> drops_;
    telemetry::CounterSet<wire::Drop> wire_drops_;
    telemetry::CounterSet<EngineCounter> counters_;
    ContextCache contexts_;
};

}  // namespace cairn::roce
