// One end of a connection in a simulated world: its queue pair, its user's actions, and their required results.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "lib/verbs/connector.hpp"

namespace cairn::sim {

// Bit of a work request number that is a receive request's.
constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63U;

constexpr bool is_write(verbs::WorkOpcode opcode) noexcept {
    return opcode == verbs::WorkOpcode::RdmaWrite || opcode == verbs::WorkOpcode::RdmaWriteWithImmediate;
}

// The private data of a connection, from each end to the other.
struct VerbsHello {
    std::uint64_t serial = 0;  // serial of the end that sends it
    std::uint64_t peer = 0;    // serial of the end that is answered
    std::uint32_t source_key = 0;
    std::uint32_t slot_key = 0;
    std::uint32_t slot = 0;
    std::uint32_t reserved = 0;
};

// A send request.
struct VerbsWork {
    std::uint64_t wr_id = 0;
    verbs::WorkOpcode opcode{};
    bool signalled = true;
    bool doomed = false;  // posted in ERR
    std::uint32_t bytes = 0;
    std::uint32_t from = 0;      // place in its host's source; of a READ: in the peer's source
    std::uint32_t to = 0;        // of a WRITE: place in the peer's target
    bool staged = false;         // sent from a copy in its landing, not from the source
    std::uint32_t landing = 0;   // number of the landing where an answer lands, or of the staged copy
    std::size_t word = 0;        // of an atomic
    std::size_t step = 0;        // of an atomic: number of earlier atomics on the word
    std::uint64_t original = 0;  // of an atomic: required value of the word before it
};

// A request for which the peer gets a completion.
struct VerbsMessage {
    verbs::CompletionOpcode opcode{};
    bool solicited = false;
    std::uint32_t bytes = 0;
    std::uint32_t from = 0;  // of a SEND: place in the sender's source
    std::optional<std::uint32_t> immediate;
};

// The requests of an end to its peer.
struct VerbsOutgoing {
    std::uint64_t posted = 0;
    std::deque<VerbsWork> pending;
    std::vector<VerbsMessage> messages;  // in the order of posting
    std::uint64_t messages_done = 0;     // messages that the peer certainly received
    bool failed = false;                 // a request failed
};

// The messages that an end receives.
struct VerbsIncoming {
    std::deque<std::uint64_t> receives;  // requests in the order of posting
    std::uint64_t posted = 0;
    std::uint64_t received = 0;  // messages received from the peer
};

// The memory that the peer may write to.
struct VerbsTarget {
    static constexpr std::uint32_t kBytes = 8192;
    static constexpr std::size_t kWords = 2;
    static constexpr std::uint8_t kUnwritten = 0x5d;  // a value that reused memory does not have

    std::vector<std::uint8_t> settled;  // the bytes without WRITEs that may still be under way
    std::vector<VerbsWork> unknown;     // failed WRITEs: executed, not executed, or in part
    std::array<std::vector<std::uint64_t>, kWords> values{{{0}, {0}}};  // values of each word after each atomic
    std::array<std::size_t, kWords> steps{};  // atomics on each word that were certainly executed
};

enum class VerbsStage : std::uint8_t {
    Asking,    // connect() was called
    Accepted,  // accept() was called
    Up,
    Leaving,     // disconnect() was called, or the manager said that the connection is over
    LeaveAsked,  // the peer wants to disconnect
    Over,        // the last event came, or the user gave up, or the process ended
};

struct VerbsEnd {
    std::uint64_t serial = 0;
    std::size_t host = 0;       // index of its VerbsHost
    std::uint64_t process = 0;  // the number of its host's process
    bool active = false;
    std::size_t peer_place = 0;  // place of its peer's host in the network
    std::uint64_t peer = 0;      // serial of the other end; 0: not known yet
    VerbsHello heard{};          // the peer's private data
    VerbsStage stage = VerbsStage::Asking;
    cm::ConnectionId id{};
    std::size_t slot = 0;
    std::uint32_t send_slots = 0;
    bool shared = false;                 // it takes receive requests from the host's shared queue
    Instant acts_at = Instant::never();  // time of its user's next action
    std::unique_ptr<verbs::Mr> region;   // region of its slot
    std::unique_ptr<verbs::Qp> qp;
    VerbsOutgoing out;
    VerbsIncoming in;
    VerbsTarget target;
};

// All ends that ever existed. An end stays where it is.
class VerbsEnds {
public:
    VerbsEnd& add() {
        VerbsEnd& made = all_.emplace_back();
        made.serial = all_.size();
        return made;
    }
    // Returns the end; nullptr if there is none.
    [[nodiscard]] VerbsEnd* find(std::uint64_t serial) {
        return serial == 0 || serial > all_.size() ? nullptr : &all_[serial - 1];
    }
    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

private:
    std::deque<VerbsEnd> all_;
};

}  // namespace cairn::sim
