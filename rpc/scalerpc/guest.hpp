// The server's end of a session: which of the client's requests were taken, and the answers that are to be sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/verbs/device.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/linked/probes.hpp"
#include "rpc/scalerpc/endpoint_config.hpp"
#include "rpc/scalerpc/entry.hpp"
#include "rpc/scalerpc/groups.hpp"
#include "rpc/scalerpc/short_answers.hpp"

namespace cairn::scalerpc {

enum class GuestState : std::uint8_t {
    Idle,      // has no blocks in the pool
    Fetching,  // its requests are being READ
    Fetched,   // its requests lie in the pool; its slice is still to come
    Serving,   // may write to its blocks
    Leaving,   // was told that its slice is over, and has not said that it knows
};

// A place in a pool that a client has for a slice.
struct Berth {
    std::uint8_t pool = 0;
    std::uint32_t slot = 0;
    std::uint32_t tenant = 0;  // its place among the pool's
};

// Which slice a client's requests are READ for. The next slice begins once the requests that it waits for were READ:
// its own, and the requests of its clients that are still READ for the slice that goes on.
enum class FetchedFor : std::uint8_t { Now, NowAwaited, Next };

// How many guests are in some of the states.
struct Census {
    std::int32_t serving = 0;
    std::int32_t leaving = 0;
    std::int32_t awaited = 0;  // guests that are Fetching and that the next slice waits for

    void count(GuestState state, FetchedFor what, std::int32_t by) noexcept {
        serving += state == GuestState::Serving ? by : 0;
        leaving += state == GuestState::Leaving ? by : 0;
        awaited += state == GuestState::Fetching && what != FetchedFor::Now ? by : 0;
    }
};

// Answers on their way from their handlers to the end of the turn, or until they have room. There is at most one for
// each block.
class Outbox {
public:
    struct Entry {
        [[nodiscard]] bool is_short() const noexcept { return lent == rpc::kNone && !waiting.valid(); }

        std::uint32_t sequence = 0;
        std::uint32_t tail = 0;           // bytes in its block
        std::uint32_t lent = rpc::kNone;  // the buffer of a long one
        rpc::MsgBuffer waiting{};         // a long one that has no such buffer yet
    };

    // `rooms` are those of the session's short answers.
    Outbox(const BlockShape& shape, std::span<std::uint8_t> rooms)
        : short_bytes_(ShortAnswers::room_bytes(shape)), shape_(shape), rooms_(rooms) {
        entries_.reserve(shape.blocks);
    }
    [[nodiscard]] std::uint32_t short_bytes() const noexcept { return short_bytes_; }
    // Where a short answer of this sequence is put together.
    [[nodiscard]] std::span<std::uint8_t> room(std::uint32_t sequence) const noexcept {
        return rooms_.subspan(std::size_t{shape_.index_of(sequence)} * short_bytes_, short_bytes_);
    }
    void expect_short(std::uint32_t sequence) noexcept { fetch_lines<FetchTo::Write>(room(sequence).data(), 1); }
    void add(const Entry& entry) { entries_.push_back(entry); }
    [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }

private:
    std::uint32_t short_bytes_;
    BlockShape shape_;
    std::span<std::uint8_t> rooms_;
    std::vector<Entry> entries_;
};

struct Guest {
    // A request that was taken, until its answer is sent.
    enum class Taken : std::uint8_t {
        None,
        Handled,   // its handler runs, or a thread has it
        Later,     // its handler has kept it
        Answered,  // its answer is in the outbox
    };
    struct Kept {
        [[nodiscard]] bool is_open() const noexcept { return state == Taken::Handled || state == Taken::Later; }

        Taken state = Taken::None;
        std::uint32_t sequence = 0;
        std::uint8_t type = 0;
        bool lacks_room = false;  // the last reserve() found none
        Instant taken{};
        Instant asked = Instant::never();  // when an entry told of the next request with this index; never(): none did
        rpc::MsgBuffer answer{};           // of reserve(), or of a request that waits for a thread
        rpc::MsgBuffer request{};          // a copy, if it waits for a thread: its block is others' in the next slice
    };

    struct Reads {
        std::uint32_t under_way = 0;
        std::uint8_t slow_looks = 0;  // in a row at which some were
    };

    // Words that the client is told apart from answers.
    struct Words {
        std::uint32_t count = 0;
        std::optional<Control> welcome{};  // to be written
        std::optional<Control> control{};  // likewise
        bool notice_posted = false;        // of its last slice, by an answer or a control word
    };

    Guest(const BlockShape& shape, std::span<std::uint8_t> rooms, std::uint32_t number)
        : outbox(shape, rooms), kept(shape.blocks), generation(number) {}
    // Returns the memory of an idle one, beside its session and its place among the entries.
    [[nodiscard]] static std::size_t bytes_for(const BlockShape& shape) noexcept {
        return shape.blocks * (sizeof(Kept) + sizeof(Outbox::Entry)) + ShortAnswers::session_bytes(shape) +
               2 * sizeof(verbs::Mw);
    }

    // Notes which requests an entry tells of for the first time. Their deadlines run from now on at the latest,
    // wherever they wait.
    // mutants: scalerpc-guest-note-asked
    void note_asked(const Entry& entry, const BlockShape& shape, Instant now) noexcept {
        const std::uint32_t taken = next - entry.first;  // of these
        if (taken >= entry.count || entry.count > shape.blocks) {
            return;
        }
        for (std::uint32_t i = taken; i < entry.count; ++i) {
            Instant& asked = kept[shape.index_of(entry.first + i)].asked;
            asked = std::min(asked, now);
        }
    }

    // Notes the next request, which is handled now.
    void take(Kept& request, const Request& asked, Instant now) noexcept {
        request.state = Taken::Handled;
        request.sequence = asked.sequence;
        request.type = asked.type;
        request.lacks_room = false;
        request.taken = now;
        ++next;
        ++share.requests;
        share.bytes += asked.payload.size();
    }
    // The request that was taken last waits in its block.
    void put_back(Kept& request, const Request& waits) noexcept {
        request.state = Taken::None;
        --next;
        --share.requests;
        share.bytes -= waits.payload.size();
    }

    // Looks from time to time. Returns true if the client takes its time to answer READs: it keeps its place meanwhile.
    // mutants: scalerpc-guest-is-stuck
    [[nodiscard]] bool is_stuck() noexcept {
        return state == GuestState::Fetching && ++reads.slow_looks == rpc::Probes::kLooksInTimeout;
    }

    // The next request is looked at soon, and answered.
    void expect_request(const BlockShape& shape) noexcept {
        fetch_lines<FetchTo::Write>(&kept[shape.index_of(next)], sizeof(Kept));
        outbox.expect_short(next);
    }

    GuestState state = GuestState::Idle;
    std::optional<Berth> berth{};
    std::uint32_t next = 0;   // the first request that was not taken
    std::uint32_t epoch = 0;  // of its last slice, among its own
    bool told = false;        // of that slice's beginning
    News grant{};             // what is told then
    FetchedFor fetched_for = FetchedFor::Now;
    std::uint64_t served = 0;  // the number of the last slice in which it, or its group, is served
    Entry fetched{};           // the entry whose requests are being READ
    Reads reads{};
    Words words{};
    std::unique_ptr<verbs::Mw> entry_window{};
    std::unique_ptr<verbs::Mw> window{};     // of its blocks in the pool
    Instant waits_since = Instant::never();  // the next request in its block, for a thread
    Duration way{};                          // in which its requests were READ lately
    Instant left{};  // when its requests were begun to be READ, or it is to leave; later, when the notice was posted
    Groups::Share share{};  // what it did in this slice
    Outbox outbox;
    std::vector<Kept> kept;
    std::uint32_t generation;  // of the session, for handles
};

}  // namespace cairn::scalerpc
