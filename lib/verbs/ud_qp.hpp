// A queue pair of unreliable datagrams.
#pragma once

#include <optional>
#include <span>

#include "lib/verbs/objects.hpp"

namespace cairn::verbs {

// One datagram: a SEND of at most one packet, with or without immediate data.
struct DatagramRequest {
    SendRequest work{};
    const Ah* to = nullptr;  // a host or a multicast group; may end once the request was posted
    Qpn qpn{};               // of the receiver; wire::kGroupQpn for a group
    Qkey qkey{};  // as the receiver expects it; if its highest bit is set, the queue pair's own Q_Key goes instead
};

// Returns the work of a request for either kind of queue pair.
[[nodiscard]] inline SendRequest& work_of(SendRequest& request) noexcept {
    return request;
}
[[nodiscard]] inline const SendRequest& work_of(const SendRequest& request) noexcept {
    return request;
}
[[nodiscard]] inline SendRequest& work_of(DatagramRequest& request) noexcept {
    return request.work;
}
[[nodiscard]] inline const SendRequest& work_of(const DatagramRequest& request) noexcept {
    return request.work;
}

// The memory of a receive request gets kGrhBytes before each message: the IPv6 header, or the IPv4 header in their last
// 20 bytes. As a Qp, it is used on the thread that drives its device.
class UdQp : public Shared, private AsyncSource {
public:
    using Request = DatagramRequest;

    UdQp(AsyncEvents& events, roce::Engine& engine, roce::UdQueuePair& qp, Pd& pd, const QpQueues& queues) noexcept;
    ~UdQp() override;

    // Posts requests in their order, up to the first one refused, which changes nothing.
    PostResult post_send(std::span<const DatagramRequest> requests) noexcept {
        return post_burst(requests, [this](const DatagramRequest& one) noexcept { return post_send(one); });
    }
    [[nodiscard]] PostVerdict post_send(const DatagramRequest& request) noexcept {
        CAIRN_ASSERT(request.to != nullptr);
        const PostVerdict verdict = qp_.post_send({request.work, {&request.to->path(), request.qpn, request.qkey}});
        if (verdict == PostVerdict::Posted) [[likely]] {
            engine_.wake(qp_);
        }
        return verdict;
    }
    PostResult post_receive(std::span<const ReceiveRequest> requests) noexcept {
        return post_burst(requests, [this](const ReceiveRequest& one) noexcept { return qp_.post_receive(one); });
    }
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept { return qp_.post_receive(request); }

    // Changes state and attributes. Changes nothing if it returns a refusal. A change to RESET removes the queue pair's
    // completions.
    [[nodiscard]] std::optional<ModifyRefusal> modify(QpState to, AttributeSet which = {},
                                                      const QpAttributes& values = {}) noexcept {
        engine_.wake(qp_);
        return qp_.modify(to, which, values);
    }
    // Goes through INIT and RTR to RTS, as most users want. Refuses only if the queue pair was not in RESET.
    [[nodiscard]] std::optional<ModifyRefusal> bring_up(Qkey qkey, Pkey pkey = Pkey{0xffff}) noexcept;

    // Joins a multicast group: the queue pair gets a copy of each datagram to it, also of datagrams that this device
    // sends there. Errors: the address is no group's; the port cannot join the group; the queue pair is a member
    // already.
    Status attach(const Ah& group) { return qp_.attach(group.path().key().remote); }
    // Leaves a group. Returns false if it was no member.
    bool detach(const Ah& group) noexcept { return qp_.detach(group.path().key().remote); }

    [[nodiscard]] QpState state() const noexcept { return qp_.state(); }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return qp_.attributes(); }
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return qp_.poll_event(); }
    [[nodiscard]] Qpn qpn() const noexcept { return qp_.qpn(); }
    [[nodiscard]] std::uint32_t most_bytes() const noexcept { return qp_.path_mtu_bytes(); }  // of a message

private:
    [[nodiscard]] std::optional<AsyncEvent> take_async() noexcept override;

    roce::Engine& engine_;
    roce::UdQueuePair& qp_;
    HeldQueues used_;
};

// Returns the sender of the message after these kGrhBytes; unspecified if they hold no header.
[[nodiscard]] net::IpAddress source_of(std::span<const std::uint8_t> grh) noexcept;

}  // namespace cairn::verbs
