// Carries a thread's requests to all shards.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/client/connection.hpp"
#include "fs/client/lane.hpp"

namespace cairn::fs {

// Is notified of each meeting with the daemon that this router has brought about.
class MeetingWatch {
public:
    virtual void met_again() noexcept = 0;

protected:
    ~MeetingWatch() = default;
};

// Used by one thread. An ask fails at its deadline: with EIO if no daemon is there, or with ETIMEDOUT if the daemon
// does not answer. Until then the router looks for the daemon again and again.
class Road {
public:
    // Makes the router. `connection` and `watch` outlive it.
    Road(Connection& connection, MeetingWatch& watch, Duration timeout);
    // Completes all asks that are left, with EIO.
    ~Road();
    Road(const Road&) = delete;
    Road& operator=(const Road&) = delete;

    // Returns the view of the last meeting. It stays the same until poll().
    [[nodiscard]] const View& view() const noexcept { return *view_; }
    [[nodiscard]] std::shared_ptr<const View> shared_view() const noexcept { return view_; }
    [[nodiscard]] const Buffers& buffers() const noexcept { return connection_.buffers(); }

    // Submits an ask. Never completes the ask before it returns.
    void submit(Ask& ask) noexcept;
    // Completes the asks that are answered. Returns the number of them. Does nothing if a completion calls it.
    std::uint32_t poll() noexcept;
    // Does as poll(), but sleeps if no answer has come.
    void wait() noexcept;
    [[nodiscard]] bool is_polling() const noexcept { return polls_; }
    [[nodiscard]] bool is_idle() const noexcept;

private:
    static constexpr Duration kLookEvery = milliseconds(10);  // how often it looks for the daemon while no answer comes
    static constexpr Duration kMeetEvery = milliseconds(20);
    static constexpr std::uint32_t kPollsToALook = 64;
    static constexpr std::uint8_t kMostDetours = 5;

    void route(Ask& ask) noexcept;
    [[nodiscard]] Lane& lane_to(ShardNumber shard) noexcept;
    void look_around() noexcept;
    void meet(Instant now) noexcept;
    void adopt_meeting() noexcept;
    void finish(LaneEnds& ends, int error) noexcept;

    Connection& connection_;
    MeetingWatch& watch_;
    Duration timeout_;
    std::shared_ptr<const View> view_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<Lane*> by_shard_;  // only the shards that were used since the last meeting
    AskQueue detoured_;            // these wait for a newer table
    Instant looked_{};
    Instant met_{};
    std::uint32_t empty_polls_ = 0;
    bool has_daemon_ = true;
    bool polls_ = false;
};

}  // namespace cairn::fs
