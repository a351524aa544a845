// How many clients each user has. A user keeps nobody else out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace cairn::fs {

class Crowd {
public:
    // `most` clients at a time, and of any user but root and `own_user` at most `most_of_user`.
    Crowd(std::size_t most, std::size_t most_of_user, std::uint32_t own_user) noexcept
        : most_(most), most_of_user_(most_of_user), own_user_(own_user) {}

    enum class Verdict : std::uint8_t { Welcome, Full, HasShare };
    [[nodiscard]] Verdict judge(std::uint32_t user) const noexcept;
    void add(std::uint32_t user);
    // The user has a client (asserted).
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

// Returns the place of who makes room, by the users of all who wait, oldest first (asserted: there is one): the oldest
// one of the user that has the most there.
[[nodiscard]] std::size_t place_to_give_up(std::span<const std::uint32_t> users);

}  // namespace cairn::fs
