// The server's end of a session: which of the client's requests were taken, and which answers are to be sent.
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
    Fetched,   // its requests lie in the pool; its slice has not begun
    Serving,   // may write to its blocks
    Leaving,   // has a notice that its slice is over, and has not confirmed it
};

// A client's slot in a pool during a slice.
struct Berth {
    std::uint8_t pool = 0;
    std::uint32_t slot = 0;
    std::uint32_t tenant = 0;  // its index among the pool's tenants
};

// The slice for which a client's requests are READ. The next slice begins once the requests that it waits for were
// READ. These are its own, and those of its clients that are still being READ for the present slice.
enum class FetchedFor : std::uint8_t { Now, NowAwaited, Next };

// Counts guests by state.
struct Census {
    std::int32_t serving = 0;
    std::int32_t leaving = 0;
    std::int32_t awaited = 0;  // guests in Fetching for which the next slice waits

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
        std::uint32_t lent = rpc::kNone;  // the buffer of a long answer
        rpc::MsgBuffer waiting{};         // a long answer without such a buffer yet
    };

    // `rooms` are for the session's short answers.
    Outbox(const BlockShape& shape, std::span<std::uint8_t> rooms)
        : short_bytes_(ShortAnswers::room_bytes(shape)), shape_(shape), rooms_(rooms) {
        entries_.reserve(shape.blocks);
    }
    [[nodiscard]] std::uint32_t short_bytes() const noexcept { return short_bytes_; }
    // Returns where a short answer of this sequence number is composed.
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
    // The state of a request from its taking until its answer is sent.
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
        bool lacks_room = false;  // the last reserve() found no room
        Instant taken{};
        Instant asked = Instant::never();  // when an entry first named the index's next request; never(): none did
        Instant waits_since = Instant::never();  // when the index's next request was first seen, if it waits there
        rpc::MsgBuffer answer{};                 // from reserve(), or for a request that waits for a thread
        rpc::MsgBuffer request{};                // a copy, if it waits for a thread: its block may be reused
    };

    struct Reads {
        std::uint32_t under_way = 0;
        std::uint8_t slow_looks = 0;  // successive looks at which READs were under way
    };

    // Words for the client apart from answers.
    struct Words {
        std::uint32_t count = 0;
        std::optional<Control> welcome{};  // not sent yet
        std::optional<Control> control{};  // not sent yet
        bool notice_posted = false;        // for its last slice, with an answer or as a control word
    };

    Guest(const BlockShape& shape, std::span<std::uint8_t> rooms, std::uint32_t number)
        : outbox(shape, rooms), kept(shape.blocks), generation(number) {}
    // Returns the memory of an idle client. Its session and its entry are not counted.
    [[nodiscard]] static std::size_t bytes_for(const BlockShape& shape) noexcept {
        return shape.blocks * (sizeof(Kept) + sizeof(Outbox::Entry)) + ShortAnswers::session_bytes(shape) +
               2 * sizeof(verbs::Mw);
    }

    // Notes which requests an entry names for the first time. Their deadlines run from now on at the latest, wherever
    // they wait.
    void note_asked(const Entry& entry, const BlockShape& shape, Instant now) noexcept {
        const std::uint32_t taken = next - entry.first;  // number of the entry's requests that were taken
        if (taken >= entry.count || entry.count > shape.blocks) {
            return;
        }
        for (std::uint32_t i = taken; i < entry.count; ++i) {
            Instant& asked = kept[shape.index_of(entry.first + i)].asked;
            asked = std::min(asked, now);
        }
    }

    // Takes the next request, which is handled now.
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
    // Puts back the request that was taken last. It waits in its block.
    void put_back(Kept& request, const Request& waits) noexcept {
        request.state = Taken::None;
        --next;
        --share.requests;
        share.bytes -= waits.payload.size();
    }

    // Looks from time to time. Returns true if the client is slow to answer READs; it keeps its pool slot meanwhile.
    [[nodiscard]] bool is_stuck() noexcept {
        return state == GuestState::Fetching && ++reads.slow_looks == rpc::Probes::kLooksInTimeout;
    }

    // Prefetches the memory of the next request and its answer.
    void expect_request(const BlockShape& shape) noexcept {
        fetch_lines<FetchTo::Write>(&kept[shape.index_of(next)], sizeof(Kept));
        outbox.expect_short(next);
    }

    GuestState state = GuestState::Idle;
    std::optional<Berth> berth{};
    std::uint32_t next = 0;   // the first request that was not taken
    std::uint32_t epoch = 0;  // of its last slice, among the session's slices
    bool told = false;        // the client was notified that this slice has begun
    News grant{};             // the notification
    FetchedFor fetched_for = FetchedFor::Now;
    std::uint64_t served = 0;  // number of the last slice in which it, or its group, is served
    Entry fetched{};           // the entry whose requests are being READ
    Reads reads{};
    Words words{};
    std::unique_ptr<verbs::Mw> entry_window{};
    std::unique_ptr<verbs::Mw> window{};  // for its blocks in the pool
    Duration way{};                       // time that READs of its requests took lately
    Instant left{};  // start of the READs of its requests, or of its leaving; later the time of the posted notice
    Groups::Share share{};  // its work in this slice
    Outbox outbox;
    std::vector<Kept> kept;
    std::uint32_t generation;  // the session's, for handles
};

}  // namespace cairn::scalerpc
