// A queue pair of a connection: reliable, unreliable, or either end of an extended reliable one.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "lib/verbs/xrc.hpp"

namespace cairn::verbs {

// Used on the thread that drives its device. Posting and polling take no lock, so only the driver may touch these
// objects; other threads post through a Remote. With service Xrc it is an initiator or a target. An initiator's
// requests name the receive queue at the peer (SendRequest::remote_srqn). A target takes no requests: posting gives
// WrongSide.
class Qp : public Shared, private AsyncSource {
public:
    using Request = SendRequest;

    Qp(AsyncEvents& events, roce::Engine& engine, roce::Engine::RcQp& qp, Pd& pd, const QpQueues& queues) noexcept;
    // Makes an XRC target.
    Qp(AsyncEvents& events, roce::Engine& engine, roce::Engine::RcQp& qp, Xrcd& domain) noexcept;
    ~Qp() override;

    // Posts requests in their order, up to the first one refused, which changes nothing. They leave at the end of the
    // device's turn.
    PostResult post_send(std::span<const SendRequest> requests) noexcept {
        const PostResult result =
            post_burst(requests, [this](const SendRequest& one) noexcept { return qp_.pair.post_send(one); });
        if (result.posted != 0) [[likely]] {
            engine_.wake(qp_);
        }
        return result;
    }
    [[nodiscard]] PostVerdict post_send(const SendRequest& request) noexcept {
        const PostVerdict verdict = qp_.pair.post_send(request);
        if (verdict == PostVerdict::Posted) [[likely]] {
            engine_.wake(qp_);
        }
        return verdict;
    }
    // Fetches the next slot into the caches, for a request that will be posted in this turn.
    void expect_send() const noexcept { qp_.pair.requester().queue().fetch_next(); }
    PostResult post_receive(std::span<const ReceiveRequest> requests) noexcept {
        return post_burst(requests, [this](const ReceiveRequest& one) noexcept { return qp_.pair.post_receive(one); });
    }
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept {
        return qp_.pair.post_receive(request);
    }

    // Changes state and attributes. Changes nothing if it returns a refusal. A change to RESET removes the queue pair's
    // completions. `path` belongs to Attribute::Path.
    [[nodiscard]] std::optional<ModifyRefusal> modify(QpState to, AttributeSet which = {},
                                                      const QpAttributes& values = {},
                                                      port::Path* path = nullptr) noexcept {
        return engine_.modify(qp_, to, which, values, path);
    }
    [[nodiscard]] QpState state() const noexcept { return qp_.pair.state(); }
    [[nodiscard]] const QpAttributes& attributes() const noexcept { return qp_.pair.attributes(); }
    [[nodiscard]] std::optional<QpEvent> poll_event() noexcept { return qp_.pair.poll_event(); }
    [[nodiscard]] Qpn qpn() const noexcept { return qp_.pair.qpn(); }
    [[nodiscard]] Service service() const noexcept { return qp_.pair.service(); }
    [[nodiscard]] QpKind kind() const noexcept { return qp_.pair.kind(); }  // its service, and its side of it
    // Notifies `sink` once of the peer's first request, as QueuePair::set_first_request_sink() does.
    void set_first_request_sink(roce::EventSink* sink) noexcept { qp_.pair.set_first_request_sink(sink); }
    // Returns the PSN of the peer's next request.
    [[nodiscard]] Psn next_receive_psn() const noexcept { return qp_.pair.responder().expected_psn(); }
    [[nodiscard]] const port::Path* path() const noexcept { return qp_.path; }

private:
    [[nodiscard]] std::optional<AsyncEvent> take_async() noexcept override;

    roce::Engine& engine_;
    roce::Engine::RcQp& qp_;
    std::variant<HeldQueues, Hold<Xrcd>> used_;
};

// The memory of an idle connection, without the slots of its queues.
constexpr std::size_t kIdleQpBytes =
    sizeof(Qp) + sizeof(roce::Engine::RcQp) + sizeof(std::unique_ptr<roce::Engine::RcQp>);
static_assert(kIdleQpBytes <= 4096);

// Returns the memory of an idle connection with the slots of its queues. With a shared receive queue its own still has
// `receive_slots`.
[[nodiscard]] constexpr std::size_t idle_qp_bytes(const QpCapacity& capacity) noexcept {
    return kIdleQpBytes + roce::SendQueue::bytes_for(capacity.send_slots, capacity.max_sges, capacity.inline_bytes) +
           roce::ReceiveQueue::bytes_for(capacity.receive_slots, capacity.max_sges);
}

}  // namespace cairn::verbs
