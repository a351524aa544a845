// Device: an RDMA adapter made of a port, for one worker; makes all other objects of the verbs and drives them.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/engine.hpp"
#include "lib/verbs/mw.hpp"
#include "lib/verbs/qp.hpp"
#include "lib/verbs/ud_qp.hpp"

namespace cairn::verbs {

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

// A turn: begin_turn(), then completions are polled and work is posted, then end_turn(). One thread.
class Device {
public:
    // The port outlives the device.
    Device(port::Port& port, const roce::EngineConfig& config, Instant now);
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

    // Takes what other threads posted, what came, what is due. True: something came.
    bool begin_turn(Instant now) noexcept;
    // Sends what there is, and makes the descriptors of what fired readable.
    void end_turn(Instant now) noexcept;
    // When there is something to do without a packet coming; the past when at once.
    [[nodiscard]] Instant next_deadline() const noexcept;

    // Drained in each begin_turn(), until it is removed.
    void add(RemotePosts& posts) { remotes_.push_back(&posts); }
    void remove(RemotePosts& posts) noexcept { std::erase(remotes_, &posts); }

    [[nodiscard]] Limits limits() const noexcept;
    [[nodiscard]] roce::Engine& engine() noexcept { return engine_; }
    [[nodiscard]] const roce::Engine& engine() const noexcept { return engine_; }
    [[nodiscard]] port::Port& port() noexcept { return port_; }
    [[nodiscard]] roce::UdMux& datagrams() noexcept { return datagrams_; }
    [[nodiscard]] roce::Sender& sender() noexcept { return sender_; }
    // What was counted, a line for each that is not zero.
    [[nodiscard]] std::string counters_text() const;

private:
    [[nodiscard]] Status judge_capacity(const QpCapacity& capacity, const QpQueues& queues) const;
    [[nodiscard]] Status judge_srq(std::uint32_t slots, std::uint32_t max_sges) const;

    port::Port& port_;
    roce::UdMux datagrams_;
    roce::Sender sender_;
    roce::Engine engine_;
    AsyncEvents events_;
    CompletionChannel::All channels_;
    std::vector<RemotePosts*> remotes_;
    bool posts_left_ = false;  // of other threads
    Limits limits_{};
    std::array<port::PacketRef, 64> burst_{};
};

}  // namespace cairn::verbs
