#include "lib/sim/rc/rc_node.hpp"

#include "lib/base/assert.hpp"

namespace cairn::sim {

Datagram datagram_of(const rc::OutPacket& packet) {
    Datagram bytes(packet.headers().begin(), packet.headers().end());
    for (const std::span<std::uint8_t> piece : packet.payload.all()) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    bytes.resize(packet.bytes(), 0);
    return bytes;
}

wire::Packet packet_of(const Datagram& datagram) {
    const wire::Parsed<wire::Packet> parsed = wire::Packet::parse(datagram);
    CAIRN_ASSERT(parsed.ok());
    return parsed.value();
}

RcNode::RcNode(const roce::QpCapacity& capacity, std::uint32_t completion_slots, std::uint32_t held_slots,
               bool equal_writes, bool is_target, double link_bytes_per_s)
    : capacity_(capacity),
      completion_slots_(completion_slots),
      equal_writes_(equal_writes),
      is_target_(is_target),
      link_bytes_per_s_(link_bytes_per_s),
      held_(held_slots) {
    const roce::Rights all = roce::Rights{roce::Right::LocalWrite} | roce::Right::RemoteWrite |
                             roce::Right::RemoteRead | roce::Right::RemoteAtomic | roce::Right::BindWindow |
                             roce::Right::FlushGlobal | roce::Right::FlushPersistent;
    key = memory.register_region({pd, span(), kBase, all}).value();
    window.key = memory.create_window(pd, roce::WindowType::Type2B).value();
    if (is_target || capacity.service != wire::Service::Xrc) {
        inboxes.push_back({pd, key, nullptr, {}, {}});
    }
    if (is_target) {
        const roce::Pd other = memory.create_pd();
        inboxes.push_back({other, memory.register_region({other, span(), kBase, all}).value(), nullptr, {}, {}});
    }
}

bool RcNode::flush(void* owner, std::span<std::uint8_t> memory, bool persistent) noexcept {
    auto* self = static_cast<RcNode*>(owner);
    const bool inside = memory.data() >= self->at(kTarget) && memory.size() <= kTargetBytes;
    self->flushes_done += inside && persistent ? 1 : 0;
    return true;
}

void RcNode::start_life(const roce::QpAttributes& values) {
    make_queue_pair();
    for (const roce::QpState to : {roce::QpState::Init, roce::QpState::Rtr, roce::QpState::Rts}) {
        const roce::Transition step = roce::find_transition(qp->state(), to, qp->kind()).value();
        const std::optional<roce::ModifyRefusal> refusal = qp->modify(to, step.required.with(step.optional), values);
        CAIRN_ASSERT(!refusal);
    }
    for (const Rkey region : to_be_invalidated) {
        (void)memory.destroy_region(region);
    }
    to_be_invalidated.clear();
    expected_receives.clear();
    expected_sends.clear();
    free_receives.clear();
    for (std::uint64_t slot = 0; slot < kReceiveSlots && !inboxes.empty(); ++slot) {
        free_receives.push_back(slot);
    }
    window.state = WindowOfNode::State::Free;
    flushes_wanted = 0;
    flushes_done = 0;
    landing_used = 0;
    shadow_target = bytes_at(kTarget, kTargetBytes);
    std::memcpy(shadow_words.data(), at(kWords), sizeof(shadow_words));
}

// Makes the queue pair. The receive queues of a target have one completion queue, so that all messages have one order.
void RcNode::make_queue_pair() {
    qp.reset();
    send_completions = std::make_unique<roce::CompletionQueue>(completion_slots_);
    receive_completions = std::make_unique<roce::CompletionQueue>(completion_slots_);
    rc::QpContext context{memory, *send_completions, *receive_completions, counters};
    context.flush = {&RcNode::flush, this};
    context.held = &held_;
    context.stalls = &turns;
    context.equal_writes = equal_writes_;
    context.link_bytes_per_s = link_bytes_per_s_;
    const roce::XrcTarget target = is_target_ ? roce::XrcTarget{&xrc_, domain_} : roce::XrcTarget{};
    for (Inbox& inbox : inboxes) {
        inbox.posted.clear();
        if (!is_target_) {
            continue;
        }
        if (inbox.queue != nullptr) {
            xrc_.remove(inbox.srqn);
        }
        inbox.queue = std::make_unique<roce::ReceiveQueue>(kReceiveSlots, capacity_.max_sges);
        inbox.srqn = xrc_.add(domain_, {inbox.queue.get(), receive_completions.get(), inbox.pd, {}}).value();
    }
    qp = std::make_unique<rc::QueuePair>(kQpn, is_target_ ? roce::Pd{} : pd, capacity_, context, target);
}

void RcNode::take(const Datagram& datagram, bool marked, Instant now) {
    auto buffer = std::make_unique<Datagram>(datagram);
    if (marked) {
        qp->on_marked(packet_of(*buffer), now);
    }
    if (qp->on_packet(packet_of(*buffer), {*buffer, buffer.get()}, now)) {
        Datagram* const name = buffer.get();
        kept_.emplace(name, std::move(buffer));
    }
}

bool RcNode::settle_buffers() {
    std::array<void*, 8> cookies{};
    while (const std::size_t count = held_.poll_released(cookies)) {
        for (std::size_t i = 0; i < count; ++i) {
            CAIRN_ASSERT(kept_.erase(static_cast<Datagram*>(cookies[i])) == 1);
        }
    }
    return kept_.size() == held_.in_use();
}

}  // namespace cairn::sim
