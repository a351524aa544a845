// A queue pair of unreliable datagrams as users of verbs know it: work requests, completions, states
// (IBTA vol. 1, 9.8.3, 10.3.1, 11.4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/roce/rc/queue_pair.hpp"
#include "lib/roce/sender.hpp"
#include "lib/roce/turn.hpp"
#include "lib/roce/ud.hpp"

namespace cairn::roce {

// A SEND, with immediate data or not, of one packet at most. A Q_Key with its highest bit set stands for the queue
// pair's own (10.2.5).
struct UdRequest {
    rc::SendRequest work{};
    UdAddress to{};
};

// What a UD queue pair uses and others may share; all outlive it.
struct UdContext {
    UdService& datagrams;
    Sender& sender;
    rc::MemoryTable& memory;
    rc::CompletionQueue& send_completions;
    rc::CompletionQueue& receive_completions;
    rc::ReceiveQueue* shared_receives = nullptr;  // nullptr: its own
};

// Each message received has rc::kGrhBytes in front of it in its receive request's memory: the IPv6 header, or zeros and
// the IPv4 header in the last 20. One that finds no receive request, or one too short, is a counted drop.
//
// A request completes when its packet is made: of that, nothing lies in the user's memory. Driven by the worker that
// owns the port.
class UdQueuePair final : public Turn, private UdReceiver {
public:
    // Errors: as UdService::create_qp(). `pd` exists (asserted); the queue pair holds it.
    static Result<std::unique_ptr<UdQueuePair>> create(Qpn qpn, rc::Pd pd, const rc::QpCapacity& capacity,
                                                       std::uint32_t path_mtu_bytes, const UdContext& context);
    ~UdQueuePair() override;

    // As rc::QueuePair::modify(). A send request that fails leads to SQE.
    [[nodiscard]] rc::ModifyVerdict modify(rc::QpState to, rc::AttributeSet which,
                                           const rc::QpAttributes& values) noexcept;
    // TooLong: more than the path MTU. The path is kept until the packet is made.
    [[nodiscard]] rc::PostVerdict post_send(const UdRequest& request) noexcept;
    [[nodiscard]] rc::PostVerdict post_receive(const rc::ReceiveRequest& request) noexcept;

    // Makes up to `most` packets. True: it may have more.
    [[nodiscard]] bool transmit(std::size_t most, Instant now) noexcept;

    // As those of the service.
    Status attach(const net::IpAddress& group);
    bool detach(const net::IpAddress& group) noexcept;

    // Each event once.
    [[nodiscard]] std::optional<rc::QpEvent> poll_event() noexcept { return events_.poll(); }
    void set_event_sink(rc::EventSink* sink) noexcept { events_.set_sink(sink); }
    [[nodiscard]] Qpn qpn() const noexcept { return qp_->config().qpn; }
    [[nodiscard]] std::uint32_t path_mtu_bytes() const noexcept { return qp_->config().path_mtu_bytes; }
    [[nodiscard]] rc::QpState state() const noexcept { return state_; }
    [[nodiscard]] const rc::QpAttributes& attributes() const noexcept { return attributes_; }

private:
    UdQueuePair(rc::Pd pd, const rc::QpCapacity& capacity, const UdContext& context);
    void on_datagrams(std::span<const UdDatagram> datagrams, Instant now) noexcept override;
    [[nodiscard]] bool flushes() const noexcept { return state_ == rc::QpState::Err || state_ == rc::QpState::Sqe; }
    [[nodiscard]] bool receives() const noexcept {
        return state_ != rc::QpState::Reset && state_ != rc::QpState::Init && state_ != rc::QpState::Err;
    }
    [[nodiscard]] rc::ReceiveQueue& receive_queue() noexcept {
        return context_.shared_receives == nullptr ? own_receives_ : *context_.shared_receives;
    }
    [[nodiscard]] std::optional<Drop> judge(const UdDatagram& datagram) noexcept;
    void take(const UdDatagram& datagram) noexcept;
    [[nodiscard]] bool place_datagram(const UdDatagram& datagram, std::span<const rc::Sge> sges) const noexcept;
    // False: an SGE that its region does not allow.
    [[nodiscard]] std::size_t make_packet(rc::SendWqe& wqe, const port::PacketRef& buffer) noexcept;
    [[nodiscard]] const UdAddress& destination_of_head() const noexcept {
        return destinations_[sends_.head() & (destinations_.size() - 1)];
    }
    void complete_head(rc::CompletionStatus status) noexcept;
    void complete_receive(std::uint64_t wr_id, rc::CompletionStatus status) noexcept;
    void flush_sends() noexcept;
    void enter_reset() noexcept;
    void enter_error() noexcept;
    void fail(rc::QpEvent why) noexcept;

    const rc::Pd pd_;
    UdContext context_;
    rc::QpState state_ = rc::QpState::Reset;
    rc::QpAttributes attributes_{};
    rc::QpEvents events_;
    UdQp* qp_ = nullptr;  // what the service knows of it
    rc::SendQueue sends_;
    std::vector<UdAddress> destinations_;  // of the send queue's requests, by position
    rc::ReceiveQueue own_receives_;        // unused with a shared one
    std::vector<net::IpAddress> groups_;
};

}  // namespace cairn::roce
