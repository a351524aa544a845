// A queue pair of unreliable datagrams as users of verbs know it: work requests, completions, states (IBTA vol. 1,
// 9.8.3, 10.3.1, 11.4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/roce/qp/qp_core.hpp"
#include "lib/roce/qp/send_queue.hpp"
#include "lib/roce/qp/turn.hpp"
#include "lib/roce/send/sender.hpp"
#include "lib/roce/ud/mux.hpp"

namespace cairn::roce {

// A SEND of one packet at most, with or without immediate data. A Q_Key whose highest bit is set stands for the queue
// pair's own (10.2.5).
struct UdRequest {
    SendRequest work{};
    UdAddress to{};
};

// The objects that a UD queue pair uses and may share with others. All of them outlive the queue pair.
struct UdContext {
    UdMux& datagrams;
    Sender& sender;
    MemoryTable& memory;
    CompletionQueue& send_completions;
    CompletionQueue& receive_completions;
    ReceiveQueue* shared_receives = nullptr;  // nullptr: the queue pair has its own
};

// The memory of a receive request begins with kGrhBytes: the IPv6 header, or zeros and the IPv4 header in the last 20.
// The message follows. A message that finds no receive request, or one too short, is dropped and counted.
//
// A send request completes when its packet is made, since the packet has a copy of the user's memory. Driven by the
// worker that owns the port.
class UdQueuePair final : public Turn, private UdReceiver {
public:
    // Creates a queue pair. Errors: as UdMux::create_qp(). `pd` exists (asserted); the queue pair holds it.
    static Result<std::unique_ptr<UdQueuePair>> create(Qpn qpn, Pd pd, const QpCapacity& capacity,
                                                       std::uint32_t path_mtu_bytes, const UdContext& context);
    ~UdQueuePair() override;

    // As rc::QueuePair::modify(). A send request that fails leads to SQE.
    [[nodiscard]] std::optional<ModifyRefusal> modify(QpState to, AttributeSet which,
                                                      const QpAttributes& values) noexcept;
    // Returns the present verdict of post_send().
    [[nodiscard]] PostVerdict judge_send(const SendRequest& work) const noexcept;
    // Posts a request. TooLong: the message is longer than the path MTU. The path is pinned until the packet is made.
    [[nodiscard]] PostVerdict post_send(const UdRequest& request) noexcept;
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept;

    // Makes up to `most` packets. Returns true if it may have more.
    [[nodiscard]] bool transmit(std::size_t most, Instant now) noexcept;

    // As UdMux::attach() and detach().
    Status attach(const net::IpAddress& group);
    bool detach(const net::IpAddress& group) noexcept;

    [[nodiscard]] const SendQueue& sends() const noexcept { return sends_; }
    // Returns each event once.
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return core_.poll_event(); }
    void set_event_sink(EventSink* sink) noexcept { core_.set_event_sink(sink); }
    [[nodiscard]] Qpn qpn() const noexcept { return core_.qpn(); }
    [[nodiscard]] std::uint32_t path_mtu_bytes() const noexcept { return qp_->config().path_mtu_bytes; }
    [[nodiscard]] QpState state() const noexcept { return core_.state(); }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return core_.attributes(); }

private:
    UdQueuePair(Qpn qpn, Pd pd, const QpCapacity& capacity, const UdContext& context);
    void on_datagrams(std::span<const UdDatagram> datagrams, Instant now) noexcept override;
    [[nodiscard]] PostVerdict judge_kind(const SendRequest& work) const noexcept;
    [[nodiscard]] std::optional<Drop> judge(const UdDatagram& datagram) noexcept;
    void take(const UdDatagram& datagram) noexcept;
    [[nodiscard]] bool place_datagram(const UdDatagram& datagram, std::span<const Sge> sges) const noexcept;
    // Returns the length of the packet; 0 if its region does not allow an SGE.
    [[nodiscard]] std::size_t make_packet(SendWqe& wqe, const port::PacketRef& buffer) noexcept;
    [[nodiscard]] const UdAddress& destination_of_head() const noexcept {
        return destinations_[sends_.head() & (destinations_.size() - 1)];
    }
    void complete_head(CompletionStatus status) noexcept;
    void flush_sends() noexcept;
    void enter_reset() noexcept;
    void enter_error() noexcept;
    void fail(QpEvent why) noexcept;

    QpCore core_;
    UdMux& datagrams_;
    Sender& sender_;
    UdEntry* qp_ = nullptr;  // the demultiplexer's entry
    SendQueue sends_;
    std::vector<UdAddress> destinations_;  // of the send queue's requests, by position
    std::vector<net::IpAddress> groups_;
};

}  // namespace cairn::roce
