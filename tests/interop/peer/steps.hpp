// Steps: work requests one at a time, as server or asker; guest/verbs-peer.c describes the protocol.
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "tests/interop/peer/peer.hpp"

namespace cairn::interop {

using verbs::CompletionOpcode;
using verbs::CompletionStatus;
using verbs::WorkOpcode;

constexpr std::size_t kArea = 16384;
constexpr std::size_t kSlots = 4;
constexpr std::size_t kOutbox = (2 + kSlots) * kArea;  // after data, the result of a READ or atomic, and received
                                                       // messages
constexpr std::size_t kRegion = kOutbox + 4096;
constexpr std::uint32_t kMagic = 0x56504631;
constexpr Psn kFirstPsn{0xfffffe};
constexpr std::uint8_t kUntouched = 0xee;
constexpr std::uint64_t kBefore = 0x1111111111111111;
constexpr std::uint64_t kAfter = 0x2222222222222222;
constexpr std::uint64_t kAdd = 0x0102030405060708;
constexpr std::uint32_t kImmediate = 0x12345600;
constexpr std::uint32_t kPathMtuBytes = 4096;

struct RawHello {
    Be32 magic;
    Be32 unreliable;
    Be32 qpn;
    Be32 psn;
};
struct RawOffer {
    Be32 magic;
    Be32 rkey;
    Be32 qpn;
    Be32 psn;
    Be64 address;
};
struct RawMessage {
    std::array<char, 16> kind{};
    Be32 bytes;
    Be32 solicited;
    Be32 number;
    Be32 key;
};
static_assert(sizeof(RawHello) == 16 && sizeof(RawOffer) == 24 && sizeof(RawMessage) == 32);

template <class Raw>
std::span<const std::uint8_t> bytes_of(const Raw& raw) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
}

struct StepKind;  // defined by the asker

// Either end of a connection. Over an unreliable one the steps have a queue pair of their own.
class Steps {
public:
    Steps(Peer& peer, bool unreliable)
        : peer_(peer),
          end_(peer, kRegion),
          unreliable_(unreliable ? std::make_unique<End>(peer, kRegion, verbs::Service::Uc) : nullptr) {}

    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;

    void serve(const cm::Requested& requested);
    void ask(const Options& options, const net::IpAddress& remote);

private:
    // Returns the queue pair of the steps.
    [[nodiscard]] End& end() noexcept { return unreliable_ == nullptr ? end_ : *unreliable_; }
    [[nodiscard]] std::span<std::uint8_t> area(std::size_t which) noexcept {
        return end().mr().bytes().subspan(which * kArea, kArea);
    }
    [[nodiscard]] bool is(std::string_view kind) const noexcept { return kind == step_.kind.data(); }
    [[nodiscard]] bool is_atomic() const noexcept { return is("cas") || is("cas_miss") || is("fadd"); }
    [[nodiscard]] std::uint8_t pattern(std::size_t at) const noexcept {
        return static_cast<std::uint8_t>(at + (at >> 8U) + std::size_t{step_.number.get()} * 37);
    }
    [[nodiscard]] bool holds(std::span<const std::uint8_t> where, std::size_t bytes) const noexcept;
    void fill(std::span<std::uint8_t> where, std::size_t bytes) const noexcept;
    void require(bool so, std::string_view what) const;

    [[nodiscard]] verbs::ConnectionChoice choice(std::span<const std::uint8_t> private_data) const;
    void bring_up(const net::IpAddress& remote, std::uint32_t qpn, std::uint32_t psn);
    void post_receive(End& to, std::size_t slot);
    void post(const verbs::SendRequest& request);
    void expect_done(CompletionOpcode opcode);
    void tell(End& to, const RawMessage& message);
    RawMessage take_message(End& from, const verbs::Completion& done);

    void serve_step();
    void prepare_step();
    void bind_window();
    bool await_received(verbs::Completion& done);
    void check_received(const verbs::Completion& done);
    void check_memory();

    void ask_step(const std::string& text, std::uint32_t number, const RawOffer& offer);
    void carry_out(const StepKind& kind, const RawOffer& offer);

    Peer& peer_;
    End end_;
    std::unique_ptr<End> unreliable_;
    std::unique_ptr<verbs::Ah> way_;
    RawMessage step_{};
    std::unique_ptr<verbs::Mw> window_;  // ends before the region that it is bound to
};

}  // namespace cairn::interop
