// A queue pair of unreliable datagrams.
#pragma once

#include <optional>
#include <span>

#include "lib/verbs/objects.hpp"

namespace cairn::verbs {

// One datagram: a SEND of one packet at most, with immediate data or not.
struct DatagramRequest {
    SendRequest work{};
    const Ah* to = nullptr;  // a host, or a multicast group; may end once it was posted
    Qpn qpn{};               // there; wire::kGroupQpn of a group
    Qkey qkey{};             // that it expects; with its highest bit set our own
};

// What a request for either kind of queue pair says of the work.
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

// Each message received has kGrhBytes in front of it in its receive request's memory: the IPv6 header, or the IPv4
// header in the last 20 of them. As Qp, used on the thread that drives its device.
class UdQp : public Shared, private AsyncSource {
public:
    using Request = DatagramRequest;

    UdQp(AsyncEvents& events, roce::Engine& engine, roce::UdQueuePair& qp, Pd& pd, const QpQueues& queues) noexcept;
    ~UdQp() override;

    // Requests in their order, up to the first that is refused, of which nothing is left.
    PostResult post_send(std::span<const DatagramRequest> requests) noexcept {
        return post_burst(requests, [this](const DatagramRequest& one) noexcept { return post_send(one); });
    }
    [[nodiscard]] PostVerdict post_send(const DatagramRequest& request) noexcept {
        CAIRN_ASSERT(request.to != nullptr);
        engine_.wake(qp_);
        return qp_.post_send({request.work, {&request.to->path(), request.qpn, request.qkey}});
    }
    PostResult post_receive(std::span<const ReceiveRequest> requests) noexcept {
        return post_burst(requests, [this](const ReceiveRequest& one) noexcept { return qp_.post_receive(one); });
    }
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept { return qp_.post_receive(request); }

    // Unless Ok, nothing changes. To RESET: no completion is left behind.
    [[nodiscard]] ModifyVerdict modify(QpState to, AttributeSet which = {}, const QpAttributes& values = {}) noexcept {
        engine_.wake(qp_);
        return qp_.modify(to, which, values);
    }
    // Through INIT and RTR to RTS: what most users want. Ok unless it was not in RESET.
    [[nodiscard]] ModifyVerdict bring_up(Qkey qkey, Pkey pkey = Pkey{0xffff}) noexcept;

    // It gets a copy of what comes to the multicast group, and of what this device sends there. Errors: the address is
    // none of a group, the port can not join it, the queue pair is in it already.
    Status attach(const Ah& group) { return qp_.attach(group.path().key().remote); }
    // False: it was not in it.
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

// Who sent the message that is behind these kGrhBytes; unspecified if they are none.
[[nodiscard]] net::IpAddress source_of(std::span<const std::uint8_t> grh) noexcept;

}  // namespace cairn::verbs
