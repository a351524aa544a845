// The operations of the send queue as one table. An operation is one row, and everything that depends on the operation
// is read from it (IBTA vol. 1, 10.8, 11.4.1.1; annexes A14, A19).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/wire/opcode.hpp"

namespace cairn::roce {

enum class WorkOpcode : std::uint8_t {
    Send,
    SendWithImmediate,
    SendWithInvalidate,
    RdmaWrite,
    RdmaWriteWithImmediate,
    RdmaRead,
    CompareSwap,
    FetchAdd,
    BindWindow,
    LocalInvalidate,
    AtomicWrite,
    Flush,
    Count,
};

enum class CompletionOpcode : std::uint8_t {
    Send,
    RdmaWrite,
    RdmaRead,
    CompareSwap,
    FetchAdd,
    Receive,
    ReceiveRdmaWithImmediate,
    BindWindow,
    LocalInvalidate,
    AtomicWrite,
    Flush,
};

// The event that completes a request.
enum class WorkEnd : std::uint8_t {
    Local,            // its turn: nothing is sent, and it takes no PSN (10.6.5.1, 10.8.3)
    Acknowledgement,  // the acknowledgement of its last packet, or of any later one
    OwnAnswer,        // an answer to this request alone; max_rd_atomic limits how many of them are outstanding
};

// The use of the memory that a request's SGEs name.
enum class WorkData : std::uint8_t {
    None,     // the SGEs name none
    Sent,     // the peer gets its bytes
    Fetched,  // the answer's bytes are written to it
};

// The operation of each packet of a request's message, by its place in the message.
struct WorkPackets {
    wire::Operation first{};
    wire::Operation middle{};
    wire::Operation last{};
    wire::Operation only{};

    [[nodiscard]] constexpr wire::Operation at(bool is_first, bool is_last) const noexcept {
        if (is_first) {
            return is_last ? only : first;
        }
        return is_last ? last : middle;
    }
};

// A set of transport services.
class ServiceSet {
public:
    template <class... Services>
    [[nodiscard]] static constexpr ServiceSet of(Services... services) noexcept {
        return ServiceSet{(0U | ... | bit_of(services))};
    }
    [[nodiscard]] constexpr bool has(wire::Service service) const noexcept { return (bits_ & bit_of(service)) != 0; }

private:
    constexpr explicit ServiceSet(unsigned bits) noexcept : bits_(static_cast<std::uint8_t>(bits)) {}
    [[nodiscard]] static constexpr unsigned bit_of(wire::Service service) noexcept {
        return 1U << (static_cast<unsigned>(service) >> 5U);
    }

    std::uint8_t bits_;
};

struct WorkTraits {
    WorkOpcode opcode;
    CompletionOpcode completion;  // of its completion
    WorkEnd end;
    WorkData data;
    bool is_word;           // works on kAtomicBytes exactly
    ServiceSet services;    // the services that have it
    WorkPackets packets{};  // Local: none

    // Returns true if its message, or for a READ its answer, may be of several packets.
    [[nodiscard]] constexpr bool is_segmented() const noexcept { return data != WorkData::None && !is_word; }
};

inline constexpr auto kWorkTraits = [] {
    using enum wire::Operation;
    using enum wire::Service;
    using enum WorkEnd;
    using enum WorkData;
    using Work = WorkOpcode;
    using Done = CompletionOpcode;
    constexpr auto kOne = [](wire::Operation only) { return WorkPackets{only, only, only, only}; };
    constexpr WorkPackets kSend{SendFirst, SendMiddle, SendLast, SendOnly};
    constexpr WorkPackets kSendImmediate{SendFirst, SendMiddle, SendLastImmediate, SendOnlyImmediate};
    constexpr WorkPackets kSendInvalidate{SendFirst, SendMiddle, SendLastInvalidate, SendOnlyInvalidate};
    constexpr WorkPackets kWrite{WriteFirst, WriteMiddle, WriteLast, WriteOnly};
    constexpr WorkPackets kWriteImmediate{WriteFirst, WriteMiddle, WriteLastImmediate, WriteOnlyImmediate};
    constexpr ServiceSet kRc = ServiceSet::of(Rc);
    constexpr ServiceSet kReliable = ServiceSet::of(Rc, Xrc);
    constexpr ServiceSet kConnected = ServiceSet::of(Rc, Uc, Xrc);
    constexpr ServiceSet kEach = ServiceSet::of(Rc, Uc, Ud, Xrc);
    return std::array<WorkTraits, static_cast<std::size_t>(Work::Count)>{{
        {Work::Send, Done::Send, Acknowledgement, Sent, false, kEach, kSend},
        {Work::SendWithImmediate, Done::Send, Acknowledgement, Sent, false, kEach, kSendImmediate},
        {Work::SendWithInvalidate, Done::Send, Acknowledgement, Sent, false, kReliable, kSendInvalidate},
        {Work::RdmaWrite, Done::RdmaWrite, Acknowledgement, Sent, false, kConnected, kWrite},
        {Work::RdmaWriteWithImmediate, Done::RdmaWrite, Acknowledgement, Sent, false, kConnected, kWriteImmediate},
        {Work::RdmaRead, Done::RdmaRead, OwnAnswer, Fetched, false, kReliable, kOne(ReadRequest)},
        {Work::CompareSwap, Done::CompareSwap, OwnAnswer, Fetched, true, kReliable, kOne(CompareSwap)},
        {Work::FetchAdd, Done::FetchAdd, OwnAnswer, Fetched, true, kReliable, kOne(FetchAdd)},
        {Work::BindWindow, Done::BindWindow, Local, None, false, kConnected},
        {Work::LocalInvalidate, Done::LocalInvalidate, Local, None, false, kConnected},
        {Work::AtomicWrite, Done::AtomicWrite, OwnAnswer, Sent, true, kRc, kOne(AtomicWrite)},
        {Work::Flush, Done::Flush, OwnAnswer, None, false, kRc, kOne(Flush)},
    }};
}();
// Each row stands at its opcode's place: none is missing, none moved.
static_assert([] {
    for (std::size_t row = 0; row < kWorkTraits.size(); ++row) {
        const WorkTraits& traits = kWorkTraits[row];
        const bool sends_message = traits.end == WorkEnd::Acknowledgement;
        if (traits.opcode != static_cast<WorkOpcode>(row) || (sends_message && traits.data != WorkData::Sent) ||
            (traits.end == WorkEnd::Local && traits.data != WorkData::None)) {
            return false;
        }
    }
    return true;
}());

// Returns the row of an `opcode` of the table: a request that names another one is not posted.
[[nodiscard]] constexpr const WorkTraits& work_traits(WorkOpcode opcode) noexcept {
    return kWorkTraits[static_cast<std::size_t>(opcode)];
}
// Returns true if the service has the operation. Returns false for an invalid opcode, too.
[[nodiscard]] constexpr bool has_work(wire::Service service, WorkOpcode opcode) noexcept {
    return opcode < WorkOpcode::Count && work_traits(opcode).services.has(service);
}

[[nodiscard]] constexpr bool is_local(WorkOpcode opcode) noexcept {
    return work_traits(opcode).end == WorkEnd::Local;
}
[[nodiscard]] constexpr bool has_own_answer(WorkOpcode opcode) noexcept {
    return work_traits(opcode).end == WorkEnd::OwnAnswer;
}
[[nodiscard]] constexpr bool is_read_or_atomic(WorkOpcode opcode) noexcept {
    return work_traits(opcode).data == WorkData::Fetched;
}
[[nodiscard]] constexpr bool is_atomic(WorkOpcode opcode) noexcept {
    return is_read_or_atomic(opcode) && work_traits(opcode).is_word;
}
// Returns true if unreliable connections have it.
[[nodiscard]] constexpr bool is_unreliable(WorkOpcode opcode) noexcept {
    return has_work(wire::Service::Uc, opcode);
}

}  // namespace cairn::roce
