// One end of the connection of verbs_ruler: a queue pair whose messages have a number.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/endian.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::ruler {

constexpr std::uint32_t kMessageBytes = 32;
constexpr std::uint32_t kReceives = 64;
constexpr std::uint32_t kSendSlots = 16;
constexpr std::uint64_t kInboxAt = 64;  // after the message that leaves

// How messages travel.
enum class Way : std::uint8_t { WriteImmediate = 1, Send = 2 };

// The private data of REQ and REP: the address that the peer WRITEs to.
struct RawGreeting {
    std::uint8_t way;
    Be64 inbox;
    Be32 rkey;
};
static_assert(sizeof(RawGreeting) == 13 && alignof(RawGreeting) == 1);

// One end of the connection. Used on the thread of its device.
class End {
public:
    // The device outlives the end.
    static Result<std::unique_ptr<End>> create(verbs::Device& device, Way way) {
        std::unique_ptr<End> end(new End(device, way));
        auto completions = device.create_cq(kReceives + kSendSlots);
        auto region = device.register_memory(*end->pd_, end->memory_,
                                             verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::LocalWrite);
        if (!completions.ok() || !region.ok()) {
            return completions.ok() ? region.error() : completions.error();
        }
        end->completions_ = std::move(completions).value();
        end->region_ = std::move(region).value();
        verbs::QpCapacity capacity;
        capacity.send_slots = kSendSlots;
        capacity.receive_slots = kReceives;
        capacity.max_sges = 1;
        capacity.inline_bytes = way == Way::Send ? kMessageBytes : 0;
        auto qp = device.create_qp(*end->pd_, capacity, {*end->completions_, *end->completions_});
        if (!qp.ok()) {
            return qp.error();
        }
        end->qp_ = std::move(qp).value();
        return end;
    }

    [[nodiscard]] verbs::Qp& qp() noexcept { return *qp_; }
    [[nodiscard]] RawGreeting greeting() const noexcept {
        return {static_cast<std::uint8_t>(way_), Be64{region_->address() + kInboxAt}, Be32{region_->rkey().value}};
    }
    // Stores the peer's private data. Called before send().
    void meet(const RawGreeting& peer) noexcept { peer_ = peer; }
    // Posts the receive requests that were used, at first all of them. The queue pair has left RESET. Returns false if
    // one was refused.
    [[nodiscard]] bool refill() noexcept {
        for (; used_ != 0; --used_) {
            const std::array<verbs::Sge, 1> piece{region_->sge(slot_at(next_slot_), kMessageBytes)};
            verbs::ReceiveRequest request;
            request.wr_id = next_slot_;
            request.sges = way_ == Way::Send ? std::span<const verbs::Sge>(piece) : std::span<const verbs::Sge>{};
            if (qp_->post_receive(request) != verbs::PostVerdict::Posted) {
                return false;
            }
            next_slot_ = (next_slot_ + 1) % kReceives;
        }
        return true;
    }
    // Sends a number. Returns false if the send queue is full, or the connection is down.
    [[nodiscard]] bool send(std::uint32_t number) noexcept {
        std::memcpy(memory_.data(), &number, sizeof(number));
        const std::array<verbs::Sge, 1> piece{region_->sge(0, kMessageBytes)};
        verbs::SendRequest request;
        request.signalled = false;
        if (way_ == Way::Send) {
            request.opcode = verbs::WorkOpcode::Send;
            request.is_inline = true;
            request.inline_bytes = std::span(memory_).first(kMessageBytes);
        } else {
            request.opcode = verbs::WorkOpcode::RdmaWriteWithImmediate;
            request.sges = piece;
            request.immediate = number;
            request.remote_address = peer_.inbox.get();
            request.rkey = Rkey{peer_.rkey.get()};
        }
        return qp_->post_send(request) == verbs::PostVerdict::Posted;
    }
    // Returns the number of the message that came, or nullopt.
    [[nodiscard]] std::optional<std::uint32_t> take() noexcept {
        std::array<verbs::Completion, 1> done;
        if (completions_->poll(done) == 0) {
            return std::nullopt;
        }
        const verbs::Completion& completion = done.front();
        if (completion.status != verbs::CompletionStatus::Success) {
            broken_ = true;
            return std::nullopt;
        }
        const std::uint64_t at = way_ == Way::Send ? slot_at(completion.wr_id) : kInboxAt;
        std::uint32_t number = 0;
        std::memcpy(&number, memory_.data() + at, sizeof(number));
        const bool told = way_ == Way::Send || (completion.has_immediate && completion.immediate == number);
        broken_ = !told || (++used_ >= kReceives / 2 && !refill());
        return broken_ ? std::nullopt : std::optional(number);
    }
    // Returns true if the connection failed, or brought something else than a message.
    [[nodiscard]] bool broken() const noexcept { return broken_; }

private:
    End(verbs::Device& device, Way way) : way_(way), pd_(device.create_pd()) {}
    [[nodiscard]] static std::uint64_t slot_at(std::uint64_t slot) noexcept { return kInboxAt + slot * kMessageBytes; }

    Way way_;
    std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kInboxAt + kReceives * kMessageBytes);
    std::unique_ptr<verbs::Pd> pd_;
    std::unique_ptr<verbs::Cq> completions_;
    std::unique_ptr<verbs::Mr> region_;
    std::unique_ptr<verbs::Qp> qp_;
    RawGreeting peer_{};
    std::uint32_t used_ = kReceives;
    std::uint32_t next_slot_ = 0;
    bool broken_ = false;
};

inline std::span<const std::uint8_t> bytes_of(const RawGreeting& raw) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
}

inline std::optional<RawGreeting> greeting_in(const cm::PrivateBytes& said) noexcept {
    RawGreeting raw{};
    if (said.size < sizeof(raw)) {
        return std::nullopt;
    }
    std::memcpy(&raw, said.octets.data(), sizeof(raw));
    const bool known =
        raw.way == static_cast<std::uint8_t>(Way::WriteImmediate) || raw.way == static_cast<std::uint8_t>(Way::Send);
    return known ? std::optional(raw) : std::nullopt;
}

}  // namespace cairn::ruler
