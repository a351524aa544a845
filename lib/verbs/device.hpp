// Device: an RDMA adapter on a worker. It makes all other objects of the verbs.
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

// Notifies a device, by its worker's mail, that other threads posted requests. It is sent once until the device has
// looked.
class PostNotice final : public worker::Letter {
public:
    explicit PostNotice(Device& device) noexcept : device_(&device) {}

    // Sends the notice, unless it is in the mail. Any thread may call it.
    void send(const worker::Address& to) noexcept {
        if (!sent_.exchange(true, std::memory_order_acq_rel) && !to.send(*this).ok()) {
            sent_.store(false, std::memory_order_relaxed);
        }
    }
    void open(worker::Worker& worker, Instant now) noexcept override;
    void discard() noexcept override { end(); }
    // Ends a notice whose device ends. If it is in the mail, it ends when it is opened.
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
    // Takes posts. Returns true if there may be more to take at once.
    virtual bool drain() noexcept = 0;
    // Returns true if drain() left requests since their queue was full.
    [[nodiscard]] bool waits_for_room() const noexcept { return waits_for_room_; }

protected:
    ~RemotePosts() = default;
    bool waits_for_room_ = false;
};

// A tenant of its worker, used by the worker's driver. Completions are polled and work is posted between turns, or by
// tenants that came after the device. The posts of such tenants leave in the same turn.
class Device final : private worker::Tenant {
public:
    // Makes a device. The worker outlives it.
    explicit Device(worker::Worker& worker);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    [[nodiscard]] std::unique_ptr<Pd> create_pd() { return std::make_unique<Pd>(engine_); }
    // Registers memory. Peers and work requests name it by its own addresses, or from `base` on (0: zero-based).
    // Errors: rights that exclude each other; no room.
    Result<std::unique_ptr<Mr>> register_memory(Pd& pd, std::span<std::uint8_t> memory, Rights rights);
    Result<std::unique_ptr<Mr>> register_memory(Pd& pd, std::span<std::uint8_t> memory, Rights rights,
                                                std::uint64_t base);
    // Creates a window that is not bound. Errors: no room.
    Result<std::unique_ptr<Mw>> create_window(Pd& pd, WindowType type);
    // Creates a completion queue. Errors: beyond the limits.
    Result<std::unique_ptr<Cq>> create_cq(std::uint32_t slots, CompletionChannel* channel = nullptr);
    Result<std::unique_ptr<Srq>> create_srq(std::uint32_t slots, std::uint32_t max_sges);
    [[nodiscard]] std::unique_ptr<Xrcd> create_xrcd() { return std::make_unique<Xrcd>(engine_); }
    // Creates a shared receive queue of an XRC domain. Errors: beyond the limits.
    Result<std::unique_ptr<XrcSrq>> create_xrc_srq(Pd& pd, Xrcd& domain, Cq& receives, std::uint32_t slots,
                                                   std::uint32_t max_sges);
    // Creates a channel for completion queues. Errors: no descriptor is left.
    Result<std::unique_ptr<CompletionChannel>> create_channel();
    // Creates a queue pair of a connection. With service Xrc it is an initiator, and nothing comes into
    // `queues.receives`. Errors: beyond the limits; a shared receive queue of XRC; a shared receive queue for an
    // initiator.
    Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpCapacity& capacity, const QpQueues& queues);
    // Creates an XRC target. Errors: beyond the limits.
    Result<std::unique_ptr<Qp>> create_xrc_target(Xrcd& domain);
    // Creates a queue pair of unreliable datagrams with the port's path MTU. The capacity's window and service are
    // ignored. Errors: beyond the limits; a shared receive queue of XRC.
    Result<std::unique_ptr<UdQp>> create_datagram_qp(Pd& pd, const QpCapacity& capacity, const QpQueues& queues);
    // Makes the way to `remote`, a host or a multicast group. Answers to the source port come back to this worker.
    Result<std::unique_ptr<Ah>> create_ah(const net::IpAddress& remote, std::uint16_t udp_source_port, Instant now);

    // Returns the events of queue pairs, completion queues and shared receive queues that are no completions.
    [[nodiscard]] AsyncEvents& async_events();

    // Adds posts that are drained until they are removed: once a turn, before the packets, if there is something new.
    void add(RemotePosts& posts);
    void remove(RemotePosts& posts) noexcept { std::erase(remotes_, &posts); }

    // Notifies the device that remote posts have something new. Any thread may call it.
    void notice_posts() noexcept { notice_->send(address_); }

    [[nodiscard]] Limits limits() const noexcept;
    [[nodiscard]] worker::Worker& worker() noexcept { return worker_; }
    [[nodiscard]] const worker::Worker& worker() const noexcept { return worker_; }

private:
    friend class PostNotice;
    // Takes part in turns from now on. Most devices need not, having neither posts of other threads nor descriptors.
    void take_part();
    bool drain_posts() noexcept;
    // Takes the posts of other threads.
    bool on_turn(Instant now) noexcept override;
    // Makes the descriptors of the channels and events that fired readable. Posts the requests that found their queue
    // full, since datagrams that left make room without a packet.
    void on_sent() noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    [[nodiscard]] Status judge_capacity(const QpCapacity& capacity, const QpQueues& queues) const;
    [[nodiscard]] Status judge_srq(std::uint32_t slots, std::uint32_t max_sges) const;

    worker::Worker& worker_;
    roce::Engine& engine_;
    AsyncEvents events_;
    CompletionChannel::All channels_;
    std::vector<RemotePosts*> remotes_;
    bool takes_part_ = false;      // in turns
    bool posts_left_ = false;      // other threads' posts that did not fit this turn
    bool drained_ = false;         // the posts were drained in this turn
    bool waits_for_room_ = false;  // some of the posts found their queue full
    Limits limits_{};
    const worker::Address address_;
    std::unique_ptr<PostNotice> notice_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::verbs
