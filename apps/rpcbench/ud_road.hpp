// The queue pair of --system ud, with the memory of its received and sent datagrams.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "apps/rpcbench/ud_format.hpp"
#include "apps/rpcbench/ud_statistics.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/common/msg_buffer.hpp"

namespace cairn::rpcbench {

// A received message. It is valid until the next receive().
struct UdArrival {
    RawUdMessage head{};
    std::span<const std::uint8_t> grh{};
    std::span<const std::uint8_t> payload{};
    Qpn from{};
};

// The destination of a session's messages.
struct UdWay {
    const verbs::Ah* to = nullptr;
    Qpn qpn{};
};

class UdRoad {
public:
    static constexpr std::size_t kBurst = 64;
    static constexpr std::uint32_t kSlots = 1024;  // for each direction; a turn brings 64 datagrams at most

    // Makes the router. Device and pool outlive it. Errors: no datagram carries a message of that length; no memory.
    static Result<std::unique_ptr<UdRoad>> create(std::uint32_t message_bytes, verbs::Device& device,
                                                  rpc::MsgPool& pool);
    ~UdRoad();
    UdRoad(const UdRoad&) = delete;
    UdRoad& operator=(const UdRoad&) = delete;

    // Takes received messages, kBurst at most.
    [[nodiscard]] std::span<const UdArrival> receive(telemetry::CounterSet<UdBreach>& breaches) noexcept;
    // Gives back the memory of the messages that receive() returned.
    void release_received() noexcept;

    // Returns how many messages may be sent. The others have been sent and have not left.
    [[nodiscard]] std::uint32_t room() noexcept;
    // Returns the payload of the message that is sent next. There is room (asserted).
    [[nodiscard]] std::uint8_t* payload() noexcept { return place_of(kSlots + next_place()) + sizeof(RawUdMessage); }
    // Sends that message. There is room (asserted).
    void send(const UdWay& way, const RawUdMessage& head, std::uint32_t payload_bytes) noexcept;

    [[nodiscard]] Qpn qpn() const noexcept { return qp_->qpn(); }
    [[nodiscard]] std::uint32_t message_bytes() const noexcept { return message_bytes_; }  // the longest one
    [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_.capacity; }
    [[nodiscard]] static std::uint32_t memory_for(std::uint32_t message_bytes) noexcept;

private:
    UdRoad(std::uint32_t message_bytes, rpc::MsgPool& pool);
    Status open(verbs::Device& device);
    void post_receive(std::uint64_t slot) noexcept;
    [[nodiscard]] std::uint8_t* place_of(std::uint64_t slot) noexcept { return memory_.data + slot * slot_bytes_; }
    [[nodiscard]] std::uint64_t next_place() const noexcept { return sent_ % kSlots; }

    rpc::MsgPool& pool_;
    const std::uint32_t message_bytes_;
    const std::uint32_t slot_bytes_;
    rpc::MsgBuffer memory_{};
    std::unique_ptr<verbs::Pd> pd_;
    std::unique_ptr<verbs::Mr> region_;
    std::unique_ptr<verbs::Cq> sends_;
    std::unique_ptr<verbs::Cq> receives_;
    std::unique_ptr<verbs::UdQp> qp_;
    std::array<verbs::Completion, kBurst> completions_{};
    std::array<UdArrival, kBurst> arrivals_{};
    std::array<verbs::Completion, kBurst> done_{};  // of sends
    std::size_t received_ = 0;                      // completions whose memory has not been given back
    std::uint64_t sent_ = 0;
    std::uint64_t left_ = 0;  // of these, as far as is known
};

}  // namespace cairn::rpcbench
