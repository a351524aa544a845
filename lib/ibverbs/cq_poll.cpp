// Polling: takes completions that are there; if there are none, takes a turn, which may bring some.
#include <arpa/inet.h>

#include <array>
#include <span>

#include "lib/ibverbs/cq.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/translate.hpp"

namespace cairn::ibverbs {

namespace {

void describe(const roce::Completion& from, Cq::NetworkType network_type, ibv_wc& to) noexcept {
    to.wr_id = from.wr_id;
    to.status = status_of(from.status);
    to.opcode = opcode_of(from.opcode);
    to.vendor_err = 0;
    to.byte_len = from.bytes;
    to.qp_num = from.qpn.value;
    to.src_qp = from.source_qpn.value;
    to.wc_flags = flags_of(from);
    to.pkey_index = 0;
    to.slid = 0;
    to.sl = from.has_grh ? network_type : 0;
    to.dlid_path_bits = 0;
    if (from.has_invalidate) {
        to.invalidated_rkey = from.invalidated.value;
    } else {
        to.imm_data = htonl(from.immediate);
    }
}

// Takes a completion. Returns false if there is none. Needs the lock.
[[nodiscard]] bool take_one(Cq& from, roce::Completion& one) noexcept {
    if (from.queue.poll({&one, 1}) == 0) {
        return false;
    }
    if (one.sends != nullptr) {
        one.sends->give_back(one);
    }
    if (from.queue.size() == 0 && from.made_event != roce::CompletionQueue::Arm::Off) [[unlikely]] {
        from.on_drained();
    }
    return true;
}

// Returns whether the queue has completions. An empty queue costs a turn, which may fill it.
[[nodiscard]] bool has_some(Cq& cq, Adapter& adapter) noexcept {
    if (cq.queue.size() == 0) {
        adapter.poll_turn();
    }
    return cq.queue.size() != 0;
}

}  // namespace

int poll_cq(ibv_cq* cq, int most, ibv_wc* completions) noexcept {
    Cq& from = Cq::of(cq);
    Adapter& adapter = adapter_of(cq->context);
    const std::lock_guard hold(adapter.lock());
    if (!has_some(from, adapter)) {
        return from.queue.overrun() ? -1 : 0;
    }
    int count = 0;
    roce::Completion one;
    while (count < most && take_one(from, one)) {
        describe(one, from.network_type, completions[count++]);
    }
    return count;
}

namespace {

Cq& cq_of(ibv_cq_ex* cq) noexcept {
    return *static_cast<Cq*>(cq);
}

// Takes the next completion. Returns ENOENT if there is none. Needs the lock.
int take_current(Cq& from) noexcept {
    if (!take_one(from, from.current)) {
        return ENOENT;
    }
    from.wr_id = from.current.wr_id;
    from.status = status_of(from.current.status);
    return 0;
}

// Programs post between start_poll() and end_poll(), so that only the queue's own mutex is held there.
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) noexcept {
    if (attributes->comp_mask != 0) {
        return EINVAL;
    }
    Cq& from = cq_of(cq);
    Adapter& adapter = adapter_of(cq->context);
    from.polling.lock();
    int found = ENOENT;
    {
        const std::lock_guard hold(adapter.lock());
        found = has_some(from, adapter) ? take_current(from) : ENOENT;
    }
    if (found != 0) {
        from.polling.unlock();
    }
    return found;
}

int next_poll(ibv_cq_ex* cq) noexcept {
    const std::lock_guard hold(adapter_of(cq->context).lock());
    return take_current(cq_of(cq));
}

void end_poll(ibv_cq_ex* cq) noexcept {
    cq_of(cq).polling.unlock();
}

std::uint64_t read_nanoseconds(clockid_t clock) noexcept {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

void set_polling(ibv_cq_ex& cq) noexcept {
    cq.start_poll = start_poll;
    cq.next_poll = next_poll;
    cq.end_poll = end_poll;
    cq.read_opcode = [](ibv_cq_ex* of) { return opcode_of(cq_of(of).current.opcode); };
    cq.read_vendor_err = [](ibv_cq_ex*) { return std::uint32_t{0}; };
    cq.read_byte_len = [](ibv_cq_ex* of) { return cq_of(of).current.bytes; };
    cq.read_imm_data = [](ibv_cq_ex* of) {
        const roce::Completion& current = cq_of(of).current;
        return current.has_invalidate ? current.invalidated.value : htonl(current.immediate);
    };
    cq.read_qp_num = [](ibv_cq_ex* of) { return cq_of(of).current.qpn.value; };
    cq.read_src_qp = [](ibv_cq_ex* of) { return cq_of(of).current.source_qpn.value; };
    cq.read_wc_flags = [](ibv_cq_ex* of) { return flags_of(cq_of(of).current); };
    cq.read_slid = [](ibv_cq_ex*) { return std::uint32_t{0}; };
    cq.read_sl = [](ibv_cq_ex* of) {
        return cq_of(of).current.has_grh ? std::uint8_t{cq_of(of).network_type} : std::uint8_t{0};
    };
    cq.read_dlid_path_bits = [](ibv_cq_ex*) { return std::uint8_t{0}; };
    cq.read_completion_ts = [](ibv_cq_ex*) { return read_nanoseconds(CLOCK_MONOTONIC); };
    cq.read_completion_wallclock_ns = [](ibv_cq_ex*) { return read_nanoseconds(CLOCK_REALTIME); };
}

}  // namespace cairn::ibverbs
