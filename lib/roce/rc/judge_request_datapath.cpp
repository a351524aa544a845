#include "lib/roce/rc/judge_request.hpp"

#include <array>

namespace cairn::roce::rc {

namespace {

using wire::Operation;
using wire::Place;
using enum RequestVerdict;

struct Entry {
    Operation operation;
    RequestTraits traits;
};
constexpr Rights kWrites{Right::RemoteWrite};
constexpr std::array kRequests{
    Entry{Operation::SendFirst, {MessageKind::Send, true, {}}},
    Entry{Operation::SendMiddle, {MessageKind::Send, false, {}}},
    Entry{Operation::SendLast, {MessageKind::Send, false, {}}},
    Entry{Operation::SendLastImmediate, {MessageKind::Send, false, {}}},
    Entry{Operation::SendLastInvalidate, {MessageKind::Send, false, {}}},
    Entry{Operation::SendOnly, {MessageKind::Send, true, {}}},
    Entry{Operation::SendOnlyImmediate, {MessageKind::Send, true, {}}},
    Entry{Operation::SendOnlyInvalidate, {MessageKind::Send, true, {}}},
    Entry{Operation::WriteFirst, {MessageKind::Write, false, kWrites}},
    Entry{Operation::WriteMiddle, {MessageKind::Write, false, kWrites}},
    Entry{Operation::WriteLast, {MessageKind::Write, false, kWrites}},
    Entry{Operation::WriteLastImmediate, {MessageKind::Write, true, kWrites}},
    Entry{Operation::WriteOnly, {MessageKind::Write, false, kWrites}},
    Entry{Operation::WriteOnlyImmediate, {MessageKind::Write, true, kWrites}},
    Entry{Operation::ReadRequest, {MessageKind::None, false, Right::RemoteRead}},
    Entry{Operation::CompareSwap, {MessageKind::None, false, Right::RemoteAtomic}},
    Entry{Operation::FetchAdd, {MessageKind::None, false, Right::RemoteAtomic}},
    Entry{Operation::AtomicWrite, {MessageKind::None, false, kWrites}},
    Entry{Operation::Flush, {MessageKind::None, false, {}}},
};

constexpr auto kByOperation = [] {
    std::array<RequestTraits, 32> table{};
    for (const Entry& entry : kRequests) {
        table[static_cast<std::size_t>(entry.operation) % table.size()] = entry.traits;
    }
    return table;
}();

RequestVerdict judge_reach(const MemoryTable& memory, const KeyUser& user, Rights wanted, const wire::Reth& range,
                           std::uint8_t*& place) noexcept {
    if (range.dma_bytes == 0) {
        return Execute;
    }
    const MemoryView view = memory.find_remote(range.rkey, user, wanted, range.address, range.dma_bytes);
    place = view.data;
    return view.refusal ? RemoteAccess : Execute;
}

// Judges access to one word that must stay whole. It lies within the range, and is aligned both by the peer's address
// and by its own.
RequestVerdict judge_word(const MemoryTable& memory, const KeyUser& user, Rights wanted, Rkey key,
                          std::uint64_t address) noexcept {
    const MemoryView view = memory.find_remote(key, user, wanted, address, kAtomicBytes);
    if (address % kAtomicBytes != 0) {
        return InvalidRequest;
    }
    if (view.refusal) {
        return RemoteAccess;
    }
    return reinterpret_cast<std::uintptr_t>(view.data) % kAtomicBytes == 0 ? Execute : InvalidRequest;
}

// Judges a FLUSH. Its placement and selectivity are defined ones (judged with the length).
RequestVerdict judge_flush(const MemoryTable& memory, const KeyUser& user, const wire::Packet& packet,
                           std::uint8_t*& place) noexcept {
    const auto& reth = packet.get<wire::Reth>();
    const Rights wanted = rights_wanted(packet);
    if (packet.get<wire::Feth>().selectivity == wire::Feth::kRange) {
        return judge_reach(memory, user, wanted, reth, place);
    }
    return memory.find_whole(reth.rkey, user, wanted) ? Execute : RemoteAccess;
}

bool legal_flush(const wire::Feth& feth) noexcept {
    constexpr std::uint8_t kPlacements = wire::Feth::kGlobal | wire::Feth::kPersistent;
    return feth.placement != 0 && (feth.placement & ~kPlacements) == 0 && feth.selectivity <= wire::Feth::kWhole;
}

}  // namespace

const RequestTraits& request_traits(Operation operation) noexcept {
    return kByOperation[static_cast<std::size_t>(operation) % kByOperation.size()];
}

RequestVerdict judge_sequence(const wire::OpcodeTraits& opcode, MessageKind under_way) noexcept {
    if (opcode.role != wire::Role::Request) {
        return InvalidRequest;
    }
    const MessageKind fits = opcode.starts_message() ? MessageKind::None : request_traits(opcode.operation).kind;
    return fits == under_way ? Execute : InvalidRequest;
}

Rights rights_wanted(const wire::Packet& packet) noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    if (!opcode.headers.has<wire::Feth>()) {
        return request_traits(opcode.operation).rights;
    }
    const std::uint8_t placement = packet.get<wire::Feth>().placement;
    const auto right = [placement](std::uint8_t bit, Right one) noexcept {
        return (placement & bit) != 0 ? Rights{one} : Rights{};
    };
    return right(wire::Feth::kGlobal, Right::FlushGlobal) | right(wire::Feth::kPersistent, Right::FlushPersistent);
}

RequestVerdict judge_rights(const wire::Packet& packet, Rights granted) noexcept {
    return granted.cover(rights_wanted(packet)) ? Execute : InvalidRequest;
}

RequestVerdict judge_length(const wire::Packet& packet, const InboundMessage& message,
                            std::uint32_t path_mtu_bytes) noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    const std::size_t payload = packet.payload().size();
    if (opcode.headers.has<wire::Feth>()) {
        return legal_flush(packet.get<wire::Feth>()) ? Execute : InvalidRequest;  // of any length: no data are moved
    }
    if (opcode.operation == Operation::AtomicWrite && payload != kAtomicBytes) {
        return InvalidRequest;
    }
    const bool has_reth = opcode.headers.has<wire::Reth>();
    const std::uint64_t stated = has_reth ? packet.get<wire::Reth>().dma_bytes : message.total_bytes;
    if (stated > kMaxMessageBytes && has_reth) {
        return InvalidRequest;
    }
    if (opcode.payload == wire::Payload::None) {
        return Execute;
    }
    const bool fills = opcode.place == Place::First || opcode.place == Place::Middle;
    if (fills ? payload != path_mtu_bytes : payload > path_mtu_bytes) {
        return InvalidRequest;
    }
    if (opcode.place == Place::Last && payload == 0) {
        return InvalidRequest;
    }
    const std::uint64_t behind = (opcode.starts_message() ? 0 : message.done_bytes) + payload;
    if (request_traits(opcode.operation).kind == MessageKind::Send) {
        return behind <= kMaxMessageBytes ? Execute : TooLong;
    }
    return (fills ? behind < stated : behind == stated) ? Execute : InvalidRequest;
}

RequestVerdict judge_room(const wire::Packet& packet, const InboundMessage& message,
                          std::uint64_t receive_bytes) noexcept {
    const std::uint64_t before = packet.traits().starts_message() ? 0 : message.done_bytes;
    return before + packet.payload().size() <= receive_bytes ? Execute : TooLong;
}

RequestVerdict judge_memory(const wire::Packet& packet, const InboundMessage& message, const MemoryTable& memory,
                            const KeyUser& user, std::uint8_t*& place) noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    const RequestTraits& traits = request_traits(opcode.operation);
    if (opcode.headers.has<wire::AtomicEth>()) {
        const auto& atomic = packet.get<wire::AtomicEth>();
        return judge_word(memory, user, traits.rights, atomic.rkey, atomic.address);
    }
    if (opcode.operation == Operation::AtomicWrite) {
        const auto& reth = packet.get<wire::Reth>();
        return judge_word(memory, user, traits.rights, reth.rkey, reth.address);
    }
    if (opcode.headers.has<wire::Feth>()) {
        return judge_flush(memory, user, packet, place);
    }
    if (opcode.headers.has<wire::Reth>()) {
        return judge_reach(memory, user, traits.rights, packet.get<wire::Reth>(), place);
    }
    if (traits.kind == MessageKind::Write) {
        return judge_reach(
            memory, user, traits.rights,
            {message.address + message.done_bytes, message.rkey, static_cast<std::uint32_t>(packet.payload().size())},
            place);
    }
    if (opcode.headers.has<wire::Ieth>()) {
        const Rkey ended = packet.get<wire::Ieth>().rkey;
        return memory.judge_invalidate(ended, user) ? RemoteAccess : Execute;
    }
    return Execute;
}

}  // namespace cairn::roce::rc
