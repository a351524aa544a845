#include "lib/sim/verbs/verbs_host.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::sim {

namespace {

constexpr std::uint32_t kCompletions = 1024;  // more than all requests of all slots
constexpr std::uint64_t kSkipped = 4096;
constexpr std::uint32_t kMostBacklog = 8;

constexpr std::size_t kUsed = VerbsHost::kSourceBytes + VerbsHost::kSlots * VerbsHost::kSlotBytes +
                              std::size_t{VerbsHost::kShared} * VerbsHost::kMostBytes;

bool is_untouched(std::span<const std::uint8_t> memory) {
    return memory.empty() || (memory.front() == VerbsHost::kUntouched &&
                              std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
}

}  // namespace

VerbsHost::VerbsHost(Node& of, Random& random) : node(of), memory(kUsed + std::size_t{2} * kMarginBytes) {
    std::memset(memory.span().data(), kUntouched, memory.span().size());
    for (std::uint32_t i = 0; i < kSourceBytes; i += sizeof(std::uint64_t)) {
        const std::uint64_t eight = random.next();
        std::memcpy(at(kBase + i), &eight, sizeof(eight));
    }
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
        free_slots.push_back(slot);
    }
}

void VerbsHost::start(const cm::Config& config, std::shared_ptr<connections::Agent> agent,
                      std::optional<connections::Sharing> listens, Random& random) {
    device = std::make_unique<verbs::Device>(node.worker());
    // A process may have the queue pair numbers and keys of the one before it. Its starting PSNs are others, as with a
    // seed of its own.
    for (std::uint64_t left = random.below(kSkipped); left > 0; --left) {
        (void)node.worker().engine().unguessable();
    }
    pd = device->create_pd();
    region = device->register_memory(*pd, {at(kBase), kUsed}, kAll, kBase).value();
    for (auto& queue : queues) {
        queue = device->create_cq(kCompletions).value();
    }
    shared = device->create_srq(kShared, 2).value();
    for (std::size_t cell = 0; cell < kShared; ++cell) {
        shared_free.push_back(cell);
    }
    home = connections::Home::create(std::move(agent), node.worker(), {config}).value();
    connector = std::make_unique<verbs::Connector>(*device, *home);
    if (listens) {
        const auto backlog = static_cast<std::uint32_t>(random.between(1, kMostBacklog));
        const bool listening = connector->listen(kPort, backlog, *listens).ok();
        CAIRN_ASSERT(listening);
    }
}

void VerbsHost::stop() {
    CAIRN_ASSERT(live.empty());
    asked.clear();
    refused.clear();
    connector.reset();
    home.reset();
    shared.reset();
    shared_posted.clear();
    shared_free.clear();
    std::memset(at(shared_address(0)), kUntouched, std::size_t{kShared} * kMostBytes);
    for (auto& queue : queues) {
        queue.reset();
    }
    region.reset();
    pd.reset();
    device.reset();
}

std::optional<std::size_t> VerbsHost::take_slot() {
    if (free_slots.empty()) {
        return std::nullopt;
    }
    const std::size_t slot = free_slots.back();
    free_slots.pop_back();
    std::memset(at(slot_address(slot) + kWords), 0, kLandings - kWords);
    return slot;
}

void VerbsHost::free_slot(std::size_t slot) {
    std::memset(at(slot_address(slot)), kUntouched, kSlotBytes);
    free_slots.push_back(slot);
}

std::uint8_t* VerbsHost::take_shared(std::uint64_t wr_id) {
    const auto posted = shared_posted.find(wr_id);
    if (posted == shared_posted.end()) {
        return nullptr;
    }
    const std::size_t cell = posted->second;
    shared_posted.erase(posted);
    shared_free.push_back(cell);
    return at(shared_address(cell));
}

bool VerbsHost::unused_untouched() {
    const std::span<const std::uint8_t> all = memory.span();
    const auto unposted = [this](std::size_t cell) { return is_untouched({at(shared_address(cell)), kMostBytes}); };
    return is_untouched(all.first(kMarginBytes)) && is_untouched(all.last(kMarginBytes)) &&
           std::all_of(shared_free.begin(), shared_free.end(), unposted) &&
           std::all_of(free_slots.begin(), free_slots.end(), [this](std::size_t slot) {
               return is_untouched({at(slot_address(slot)), kSlotBytes});
           });
}

bool VerbsHost::knows(std::uint64_t peer) const {
    return std::any_of(asked.begin(), asked.end(),
                       [peer](const VerbsAsked& each) { return each.hello.serial == peer; }) ||
           std::any_of(live.begin(), live.end(), [peer](const VerbsEnd* end) { return end->peer == peer; });
}

VerbsEnd* VerbsHost::find(Qpn qpn) const {
    const auto found =
        std::find_if(live.begin(), live.end(), [qpn](const VerbsEnd* end) { return end->qp->qpn() == qpn; });
    return found == live.end() ? nullptr : *found;
}

VerbsEnd* VerbsHost::find(cm::ConnectionId id) const {
    const auto found = std::find_if(live.begin(), live.end(), [id](const VerbsEnd* end) { return end->id == id; });
    return found == live.end() ? nullptr : *found;
}

}  // namespace cairn::sim
