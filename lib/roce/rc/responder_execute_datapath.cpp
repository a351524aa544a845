// Executes requests that were judged good.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "lib/base/user_memory.hpp"
#include "lib/roce/rc/responder.hpp"

namespace cairn::roce::rc {

using wire::Operation;

namespace {

// Executes an atomic as one whole, even if threads of this process work on the word at the same time.
std::uint64_t apply(std::uint64_t& memory, const wire::AtomicEth& atomic, Operation operation) noexcept {
    const std::atomic_ref<std::uint64_t> word(memory);
    if (operation == Operation::FetchAdd) {
        return word.fetch_add(atomic.swap_or_add);
    }
    std::uint64_t original = atomic.compare;
    (void)word.compare_exchange_strong(original, atomic.swap_or_add);
    return original;
}

}  // namespace

bool Responder::place_payload(const wire::Packet& packet) noexcept {
    Pieces pieces;
    const std::span<const std::uint8_t> payload = packet.payload();
    if (!find_pieces({memory_, receiver_.pd, Right::LocalWrite}, receive_.wqe.pieces(), message_.done_bytes,
                     payload.size(), pieces)) {
        return false;
    }
    return place(pieces, payload);
}

bool Responder::execute_send(const wire::Packet& packet) noexcept {
    if (packet.traits().starts_message()) {
        take_receive();
        message_ = {MessageKind::Send, 0, receive_.wqe.head.bytes, 0, Rkey{}};
    }
    if (!place_payload(packet)) {
        return false;
    }
    message_.done_bytes += packet.payload().size();
    return true;
}

// Executes a part of a WRITE. `to` was judged.
bool Responder::execute_write(const wire::Packet& packet, std::uint8_t* to) noexcept {
    if (packet.traits().starts_message()) {
        const auto& reth = packet.get<wire::Reth>();
        // Written field by field: it is read again at once, and a whole written piece by piece would not be forwarded.
        message_.kind = MessageKind::Write;
        message_.done_bytes = 0;
        message_.total_bytes = reth.dma_bytes;
        message_.address = reth.address;
        message_.rkey = reth.rkey;
    }
    const std::span<const std::uint8_t> payload = packet.payload();
    if (!payload.empty()) {
        CAIRN_ASSERT(to != nullptr);
        if (!place(to, payload)) {
            return false;
        }
    }
    message_.done_bytes += payload.size();
    return true;
}

bool Responder::complete_message(const wire::Packet& packet) noexcept {
    const wire::OpcodeTraits& opcode = packet.traits();
    const bool is_send = message_.kind == MessageKind::Send;
    const bool has_immediate = opcode.headers.has<wire::ImmDt>();
    const std::uint64_t bytes = message_.done_bytes;
    message_ = {};
    msn_ = Msn{msn_.value + 1};
    if (delayed_acks_.count_message()) {
        owe_ack();
    }
    if (!is_send && !has_immediate) {
        if (write_sink_ != nullptr) {
            write_sink_->on_event();
        }
        return true;
    }
    if (!is_send) {
        take_receive();
    }
    Completion completion = receive_completion(receive_.wqe.head.wr_id, CompletionStatus::Success);
    completion.opcode = is_send ? CompletionOpcode::Receive : CompletionOpcode::ReceiveRdmaWithImmediate;
    completion.solicited = packet.bth().solicited;
    completion.bytes = static_cast<std::uint32_t>(bytes);
    if (has_immediate) {
        completion.has_immediate = true;
        completion.immediate = packet.get<wire::ImmDt>().data;
    }
    if (opcode.headers.has<wire::Ieth>()) {
        completion.has_invalidate = true;
        completion.invalidated = packet.get<wire::Ieth>().rkey;
        memory_.invalidate(completion.invalidated);
    }
    return receiver_.completions->push(completion);
}

Completion Responder::receive_completion(std::uint64_t wr_id, CompletionStatus status) const noexcept {
    Completion completion{wr_id, status, CompletionOpcode::Receive};
    completion.qpn = qpn_;
    completion.srqn = receiver_.srqn;
    return completion;
}

SavedAnswer& Responder::save(const wire::Packet& packet, std::uint32_t responses) noexcept {
    msn_ = Msn{msn_.value + 1};
    SavedAnswer& saved = answers_.add();
    saved.operation = packet.traits().operation;
    saved.first = saved.from = saved.next = expected_;
    saved.last = saved.until = expected_.plus(responses - 1);
    saved.msn = msn_;
    saved.pd = receiver_.pd;
    expected_ = expected_.plus(responses);
    return saved;
}

void Responder::execute_read(const wire::Packet& packet) noexcept {
    const auto& reth = packet.get<wire::Reth>();
    SavedAnswer& saved = save(packet, responses_for(reth.dma_bytes, attributes_->path_mtu_bytes));
    saved.rkey = reth.rkey;
    saved.address = reth.address;
    saved.bytes = saved.end = reth.dma_bytes;
}

bool Responder::execute_atomic(const wire::Packet& packet) noexcept {
    const auto& atomic = packet.get<wire::AtomicEth>();
    const MemoryView view =
        memory_.find_remote(atomic.rkey, key_user(), Right::RemoteAtomic, atomic.address, kAtomicBytes);
    CAIRN_ASSERT(!view.refusal);  // judged
    std::uint64_t original = 0;
    const auto execute = [&]() noexcept {
        original = apply(*reinterpret_cast<std::uint64_t*>(view.data), atomic, packet.traits().operation);
    };
    if (!UserMemory::run(execute)) {
        return false;
    }
    SavedAnswer& saved = save(packet, 1);
    saved.rkey = atomic.rkey;
    saved.address = atomic.address;
    saved.original = original;
    return true;
}

// Writes the word as one whole, like an atomic. Readers see it after everything that was written before it.
bool Responder::execute_atomic_write(const wire::Packet& packet) noexcept {
    const auto& reth = packet.get<wire::Reth>();
    const MemoryView view = memory_.find_remote(reth.rkey, key_user(), Right::RemoteWrite, reth.address, kAtomicBytes);
    CAIRN_ASSERT(!view.refusal);  // judged
    std::uint64_t value = 0;
    std::memcpy(&value, packet.payload().data(), sizeof(value));  // as it was in the peer's memory
    const auto execute = [&]() noexcept {
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(view.data)).store(value, std::memory_order_release);
    };
    if (!UserMemory::run(execute)) {
        return false;
    }
    SavedAnswer& saved = save(packet, 1);
    saved.rkey = reth.rkey;
    saved.address = reth.address;
    return true;
}

bool Responder::execute_flush(const wire::Packet& packet) noexcept {
    const auto& feth = packet.get<wire::Feth>();
    const auto& reth = packet.get<wire::Reth>();
    const Rights wanted = rights_wanted(packet);
    std::span<std::uint8_t> range;
    if (feth.selectivity == wire::Feth::kWhole) {
        range = memory_.find_whole(reth.rkey, key_user(), wanted).value_or(range);
    } else if (reth.dma_bytes != 0) {
        range = {memory_.find_remote(reth.rkey, key_user(), wanted, reth.address, reth.dma_bytes).data, reth.dma_bytes};
    }
    __sync_synchronize();  // earlier stores are visible to all threads; TSan does not support std::atomic_thread_fence
    const bool persistent = (feth.placement & wire::Feth::kPersistent) != 0;
    if (flush_.flush != nullptr && !range.empty() && !flush_.flush(flush_.owner, range, persistent)) {
        return false;
    }
    SavedAnswer& saved = save(packet, 1);
    saved.rkey = reth.rkey;
    saved.address = reth.address;
    return true;
}

RequestVerdict Responder::execute_answered(const wire::Packet& packet) noexcept {
    const Operation operation = packet.traits().operation;
    if (operation == Operation::Flush) {
        return execute_flush(packet) ? RequestVerdict::Execute : RequestVerdict::FlushFailed;
    }
    if (operation == Operation::ReadRequest) {
        execute_read(packet);
        return RequestVerdict::Execute;
    }
    const bool done = operation == Operation::AtomicWrite ? execute_atomic_write(packet) : execute_atomic(packet);
    return done ? RequestVerdict::Execute : RequestVerdict::RemoteAccess;
}

}  // namespace cairn::roce::rc
