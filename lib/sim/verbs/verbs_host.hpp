// A worker's part in a simulated world of connections: the production device and connector, the worker's memory, and
// its ends of connections.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/verbs/verbs_end.hpp"
#include "lib/sim/world.hpp"

namespace cairn::sim {

// A peer's request that the user has not answered.
struct VerbsAsked {
    cm::ConnectionId id{};
    VerbsHello hello{};
    std::size_t from = 0;  // place of the peer's host in the network
    Instant answer_at{};
};

// The memory of a VerbsHost. It has the source (the bytes to send, which never change), then a slot for each end, and
// then the landings of the shared receive queue. A slot has the target of the peer's WRITEs, the words of the peer's
// atomics, the landings of answers, and the landings of messages. The memory outlives processes.
class VerbsHost {
public:
    static constexpr std::uint16_t kPort = 7471;
    static constexpr std::size_t kSlots = 10;
    static constexpr std::uint32_t kMostBytes = 6000;  // bytes of a message; a multiple of 8
    static constexpr std::uint32_t kRequests = 8;      // requests of each kind, at most
    static constexpr std::uint32_t kSourceBytes = 16384;
    static constexpr std::uint32_t kMarginBytes = 4096;
    static constexpr std::uint32_t kTarget = 0;  // places in a slot
    static constexpr std::uint32_t kWords = kTarget + VerbsTarget::kBytes;
    static constexpr std::uint32_t kLandings = kWords + 64;
    static constexpr std::uint32_t kReceives = kLandings + kRequests * kMostBytes;
    static constexpr std::uint32_t kSlotBytes = kReceives + kRequests * kMostBytes;
    static constexpr std::uint32_t kShared = 12;      // requests of the shared receive queue
    static constexpr std::uint64_t kBase = 0x100000;  // the address of the source, the same in each history
    static constexpr std::uint8_t kUntouched = 0xb7;
    static constexpr verbs::Rights kPeers =
        verbs::Rights(verbs::Right::RemoteWrite).with(verbs::Right::RemoteRead).with(verbs::Right::RemoteAtomic);
    static constexpr verbs::Rights kAll = kPeers.with(verbs::Right::LocalWrite);

    VerbsHost(Node& node, Random& random);

    // Starts the process. Everything but memory is made anew. `agent` is the agent of all workers of the host. If
    // `listens` is empty, this worker does not listen.
    void start(const cm::Config& config, std::shared_ptr<connections::Agent> agent,
               std::optional<connections::Sharing> listens, Random& random);
    // Stops the process. All its ends have been destroyed.
    void stop();

    [[nodiscard]] static std::uint64_t slot_address(std::size_t slot) {
        return kBase + kSourceBytes + slot * kSlotBytes;
    }
    [[nodiscard]] static std::uint64_t shared_address(std::size_t cell) {
        return slot_address(kSlots) + cell * kMostBytes;
    }
    [[nodiscard]] std::uint8_t* at(std::uint64_t address) {
        return memory.span().data() + kMarginBytes + (address - kBase);
    }
    [[nodiscard]] std::uint8_t* slot_at(const VerbsEnd& end, std::uint32_t place) {
        return at(slot_address(end.slot) + place);
    }
    // Returns a slot with fresh memory for a new end; nullopt if all slots are taken.
    [[nodiscard]] std::optional<std::size_t> take_slot();
    void free_slot(std::size_t slot);
    // Returns the memory of this request of the shared receive queue, and frees its cell. Returns nullptr if there is
    // no such request.
    [[nodiscard]] std::uint8_t* take_shared(std::uint64_t wr_id);
    // Returns whether the memory that may not be written is untouched.
    [[nodiscard]] bool unused_untouched();

    [[nodiscard]] VerbsEnd* find(Qpn qpn) const;
    [[nodiscard]] VerbsEnd* find(cm::ConnectionId id) const;
    // Returns whether this end of a peer has asked the host's user.
    [[nodiscard]] bool knows(std::uint64_t peer) const;
    [[nodiscard]] bool is_full() const { return free_slots.empty(); }

    Node& node;
    AlignedMemory memory;
    std::vector<std::size_t> free_slots;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Mr> region;  // all but the margins
    std::array<std::unique_ptr<verbs::Cq>, 2> queues;
    std::unique_ptr<verbs::Srq> shared;
    std::map<std::uint64_t, std::size_t> shared_posted;  // cells, by request
    std::vector<std::size_t> shared_free;                // cells
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Connector> connector;
    std::vector<VerbsEnd*> live;
    std::vector<VerbsAsked> asked;
    std::set<cm::ConnectionId> refused;  // requests that ended unanswered
    Instant acts_at{};
};

}  // namespace cairn::sim
