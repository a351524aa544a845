// The sessions of an endpoint by number, and the lists of free and open ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// A fixed number of sessions. An open session pins its peer's path.
class SessionTable {
public:
    explicit SessionTable(std::uint32_t sessions_max);
    ~SessionTable();
    SessionTable(const SessionTable&) = delete;
    SessionTable& operator=(const SessionTable&) = delete;

    // True if there is a session of this number, open or not. A peer's packets name no more than that.
    [[nodiscard]] bool has(SessionId id) const noexcept { return id.number() < capacity_; }
    // True if the session of this name has not ended.
    [[nodiscard]] bool knows(SessionId id) const noexcept { return has(id) && sessions_[id.number()].self == id; }
    // Returns the session with this number, which is below capacity().
    [[nodiscard]] Session& operator[](SessionId id) noexcept { return sessions_[id.number()]; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::size_t free_count() const noexcept { return free_.size(); }

    // Returns the number of open sessions. They are in any order: the end of a session moves the last one to its place.
    [[nodiscard]] std::size_t open_count() const noexcept { return open_.size(); }
    [[nodiscard]] Session& open_at(std::size_t place) noexcept { return sessions_[open_[place]]; }
    [[nodiscard]] const Session& open_at(std::size_t place) const noexcept { return sessions_[open_[place]]; }

    // Returns a fresh session in state Free, which the caller changes at once, or nullptr if all are in use.
    [[nodiscard]] Session* open(const roce::UdAddress& peer, std::uint64_t token, Instant now);
    // Destroys the session's client and server parts. From now on the session has its successor's name.
    void close(Session& session) noexcept;
    // From now on open() returns nullptr until a session is closed.
    void open_no_more() noexcept { free_.clear(); }

private:
    std::uint32_t capacity_;
    std::unique_ptr<Session[]> sessions_;
    std::vector<std::uint16_t> free_;
    std::vector<std::uint16_t> open_;  // a session is at its Session::place
};

}  // namespace cairn::erpc
