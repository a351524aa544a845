// Device: an RDMA adapter on a worker; makes all other objects of the verbs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/engine.hpp"
#include "lib/verbs/mw.hpp"
#include "lib/verbs/qp.hpp"
#include "lib/verbs/ud_qp.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::verbs {

class Device;

// Tells a device by its worker's mail that other threads posted something: once until it has looked.
class PostNotice final : public worker::Letter {
public:
    explicit PostNotice(Device& device) noexcept : device_(&device) {}

    // Any thread.
    void send(const worker::Address& to) noexcept {
        if (!sent_.exchange(true, std::memory_order_acq_rel) && !to.send(*this).ok()) {
            sent_.store(false, std::memory_order_relaxed);
        }
    }
    void open(worker::Worker& worker, Instant now) noexcept override;
    void discard() noexcept override { end(); }
    // The device ends. One that is in the mail ends once it is opened.
    static void leave(std::unique_ptr<PostNotice> notice) noexcept;

private:
    void end() noexcept;

    Device* device_;
    std::atomic<bool> sent_{false};
};

// Requests that other threads posted; see Remote.
class RemotePosts {
public:
    RemotePosts() = default;
    RemotePosts(const RemotePosts&) = delete;
    RemotePosts& operator=(const RemotePosts&) = delete;
    // True: there may be more at once.
    virtual bool drain() noexcept = 0;

protected:
    ~RemotePosts() = default;
};

// A tenant of its worker, used by whoever drives that: completions are polled and work is posted between turns, or by
// tenants that came after the device; what they post leaves in the same turn.
class Device final : private worker::Tenant {
public:
    // The worker outlives the device.
    explicit Device(worker::Worker& worker);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    [[nodiscard]] std::unique_ptr<Pd> create_pd() { return std::make_unique<Pd>(engine_); }
    // By its own addresses, or from `base` on (0: zero-based). Errors: rights that exclude each other, no room.
    Result<std::unique_ptr<Mr>> register_memory(Pd& pd, std::span<std::uint8_t> memory, Rights rights);
    Result<std::unique_ptr<Mr>> register_memory(Pd& pd, std::span<std::uint8_t> memory, Rights rights,
                                                std::uint64_t base);
    // Bound to nothing. Errors: no room.
    Result<std::unique_ptr<Mw>> create_window(Pd& pd, WindowType type);
    // Errors: beyond the limits.
    Result<std::unique_ptr<Cq>> create_cq(std::uint32_t slots, CompletionChannel* channel = nullptr);
    Result<std::unique_ptr<Srq>> create_srq(std::uint32_t slots, std::uint32_t max_sges);
    [[nodiscard]] std::unique_ptr<Xrcd> create_xrcd() { return std::make_unique<Xrcd>(engine_); }
    // Errors: beyond the limits.
    Result<std::unique_ptr<XrcSrq>> create_xrc_srq(Pd& pd, Xrcd& domain, Cq& receives, std::uint32_t slots,
                                                   std::uint32_t max_sges);
    // For completion queues to sleep on. Errors: no descriptor left.
    Result<std::unique_ptr<CompletionChannel>> create_channel();
    // Of service Xrc: an initiator; nothing comes into `queues.receives`. Errors: beyond the limits, a shared receive
    // queue of XRC, or one for an initiator.
    Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpCapacity& capacity, const QpQueues& queues);
    // An XRC target. Errors: beyond the limits.
    Result<std::unique_ptr<Qp>> create_xrc_target(Xrcd& domain);
    // Of unreliable datagrams, of the port's path MTU; the capacity's window and service do not count. Errors: beyond
    // the limits, a shared receive queue of XRC.
    Result<std::unique_ptr<UdQp>> create_datagram_qp(Pd& pd, const QpCapacity& capacity, const QpQueues& queues);
    // The way to `remote`, a host or a multicast group, with the source port by which answers come back to this worker.
    Result<std::unique_ptr<Ah>> create_ah(const net::IpAddress& remote, std::uint16_t udp_source_port, Instant now);

    // What happened to queue pairs, completion queues and shared receive queues beside completions.
    [[nodiscard]] AsyncEvents& async_events() noexcept { return events_; }

    // Drained once in each turn, before it looks at what came if there is something new, until it is removed.
    void add(RemotePosts& posts) {
        address_.expect_mail();
        remotes_.push_back(&posts);
    }
    void remove(RemotePosts& posts) noexcept { std::erase(remotes_, &posts); }

    // Something was added to remote posts. Any thread.
    void notice_posts() noexcept { notice_->send(address_); }

    [[nodiscard]] Limits limits() const noexcept;
    [[nodiscard]] worker::Worker& worker() noexcept { return worker_; }
    [[nodiscard]] const worker::Worker& worker() const noexcept { return worker_; }

private:
    friend class PostNotice;
    bool drain_posts() noexcept;
    // Takes what other threads posted.
    bool on_turn(Instant now) noexcept override;
    // Makes the descriptors of what fired readable.
    void on_sent() noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    [[nodiscard]] Status judge_capacity(const QpCapacity& capacity, const QpQueues& queues) const;
    [[nodiscard]] Status judge_srq(std::uint32_t slots, std::uint32_t max_sges) const;

    worker::Worker& worker_;
    roce::Engine& engine_;
    AsyncEvents events_;
    CompletionChannel::All channels_;
    std::vector<RemotePosts*> remotes_;
    bool posts_left_ = false;  // of other threads
    bool drained_ = false;     // in this turn
    Limits limits_{};
    const worker::Address address_;
    std::unique_ptr<PostNotice> notice_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::verbs
