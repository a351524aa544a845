// A queue pair of unreliable datagrams as users of verbs know it: work requests, completions, states
// (IBTA vol. 1, 9.8.3, 10.3.1, 11.4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/capacity.hpp"
#include "lib/roce/qp/completion_queue.hpp"
#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/qp_events.hpp"
#include "lib/roce/qp/receive_queue.hpp"
#include "lib/roce/qp/send_queue.hpp"
#include "lib/roce/qp/turn.hpp"
#include "lib/roce/send/sender.hpp"
#include "lib/roce/ud/mux.hpp"

namespace cairn::roce {

// A SEND, with immediate data or not, of one packet at most. A Q_Key with its highest bit set stands for the queue
// pair's own (10.2.5).
struct UdRequest {
    SendRequest work{};
    UdAddress to{};
};

// What a UD queue pair uses and others may share; all outlive it.
struct UdContext {
    UdMux& datagrams;
    Sender& sender;
    MemoryTable& memory;
    CompletionQueue& send_completions;
    CompletionQueue& receive_completions;
    ReceiveQueue* shared_receives = nullptr;  // nullptr: its own
};

// Each message received has kGrhBytes in front of it in its receive request's memory: the IPv6 header, or zeros and
// the IPv4 header in the last 20. One that finds no receive request, or one too short, is a counted drop.
//
// A request completes when its packet is made: of that, nothing lies in the user's memory. Driven by the worker that
// owns the port.
class UdQueuePair final : public Turn, private UdReceiver {
public:
    // Errors: as UdMux::create_qp(). `pd` exists (asserted); the queue pair holds it.
    static Result<std::unique_ptr<UdQueuePair>> create(Qpn qpn, Pd pd, const QpCapacity& capacity,
                                                       std::uint32_t path_mtu_bytes, const UdContext& context);
    ~UdQueuePair() override;

    // As rc::QueuePair::modify(). A send request that fails leads to SQE.
    [[nodiscard]] ModifyVerdict modify(QpState to, AttributeSet which, const QpAttributes& values) noexcept;
    // TooLong: more than the path MTU. The path is kept until the packet is made.
    [[nodiscard]] PostVerdict post_send(const UdRequest& request) noexcept;
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept;

    // Makes up to `most` packets. True: it may have more.
    [[nodiscard]] bool transmit(std::size_t most, Instant now) noexcept;

    // As those of the service.
    Status attach(const net::IpAddress& group);
    bool detach(const net::IpAddress& group) noexcept;

    // Each event once.
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return events_.poll(); }
    void set_event_sink(EventSink* sink) noexcept { events_.set_sink(sink); }
    [[nodiscard]] Qpn qpn() const noexcept { return qp_->config().qpn; }
    [[nodiscard]] std::uint32_t path_mtu_bytes() const noexcept { return qp_->config().path_mtu_bytes; }
    [[nodiscard]] QpState state() const noexcept { return state_; }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return attributes_; }

private:
    UdQueuePair(Pd pd, const QpCapacity& capacity, const UdContext& context);
    void on_datagrams(std::span<const UdDatagram> datagrams, Instant now) noexcept override;
    [[nodiscard]] bool flushes() const noexcept { return state_ == QpState::Err || state_ == QpState::Sqe; }
    [[nodiscard]] bool receives() const noexcept {
        return state_ != QpState::Reset && state_ != QpState::Init && state_ != QpState::Err;
    }
    [[nodiscard]] ReceiveQueue& receive_queue() noexcept {
        return context_.shared_receives == nullptr ? own_receives_ : *context_.shared_receives;
    }
    [[nodiscard]] std::optional<Drop> judge(const UdDatagram& datagram) noexcept;
    void take(const UdDatagram& datagram) noexcept;
    [[nodiscard]] bool place_datagram(const UdDatagram& datagram, std::span<const Sge> sges) const noexcept;
    // False: an SGE that its region does not allow.
    [[nodiscard]] std::size_t make_packet(SendWqe& wqe, const port::PacketRef& buffer) noexcept;
    [[nodiscard]] const UdAddress& destination_of_head() const noexcept {
        return destinations_[sends_.head() & (destinations_.size() - 1)];
    }
    void complete_head(CompletionStatus status) noexcept;
    void complete_receive(std::uint64_t wr_id, CompletionStatus status) noexcept;
    void flush_sends() noexcept;
    void enter_reset() noexcept;
    void enter_error() noexcept;
    void fail(QpEvent why) noexcept;

    const Pd pd_;
    UdContext context_;
    QpState state_ = QpState::Reset;
    QpAttributes attributes_{};
    QpEvents events_;
    UdEntry* qp_ = nullptr;  // what the service knows of it
    SendQueue sends_;
    std::vector<UdAddress> destinations_;  // of the send queue's requests, by position
    ReceiveQueue own_receives_;            // unused with a shared one
    std::vector<net::IpAddress> groups_;
};

}  // namespace cairn::roce
