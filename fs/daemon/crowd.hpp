// Client quotas: how many clients each user has. A user cannot use up the places of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace cairn::fs {

class Crowd {
public:
    // Allows `most` clients at a time. Allows at most `most_of_user` of one user, except root and `own_user`.
    Crowd(std::size_t most, std::size_t most_of_user, std::uint32_t own_user) noexcept
        : most_(most), most_of_user_(most_of_user), own_user_(own_user) {}

    enum class Verdict : std::uint8_t { Welcome, Full, HasShare };
    [[nodiscard]] Verdict judge(std::uint32_t user) const noexcept;
    void add(std::uint32_t user);
    // Notes that a client of the user has left. The user has a client (asserted).
    void remove(std::uint32_t user) noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t count_of(std::uint32_t user) const noexcept;

private:
    const std::size_t most_;
    const std::size_t most_of_user_;
    const std::uint32_t own_user_;
    std::size_t count_ = 0;
    std::map<std::uint32_t, std::size_t> users_;
};

// Picks the connection to drop. `users` has the user of each waiting connection, oldest first; it is not empty
// (asserted). Returns the index of the oldest connection of the user with most.
[[nodiscard]] std::size_t place_to_give_up(std::span<const std::uint32_t> users);

}  // namespace cairn::fs
