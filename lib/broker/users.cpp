#include "lib/broker/users.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>

#include "lib/base/owned_fd.hpp"

namespace cairn::broker {

namespace {

constexpr std::uint32_t kUsualOverflow = 65534;
constexpr std::array<std::uint32_t, 3> kEverybody{0, 0, 0xffff'ffff};  // the first here, the first outside, how many

// Takes a number and the space before it off the text.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool maps_everybody(std::string_view uid_map) noexcept {
    for (const std::uint32_t expected : kEverybody) {
        if (take_number(uid_map) != expected) {
            return false;
        }
    }
    return uid_map.empty() || uid_map == "\n";
}

// Returns the part of the file that fits into `room`: enough of a map to see that it is another one.
std::string_view read_start(const char* path, std::span<char> room) noexcept {
    const OwnedFd file(open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t bytes = file.is_open() ? read(file.get(), room.data(), room.size()) : 0;
    return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

constexpr const char* kOverflowFile = "/proc/sys/kernel/overflowuid";

std::uint32_t parse_overflow(std::string_view text) noexcept {
    return take_number(text).value_or(kUsualOverflow);
}

}  // namespace

std::uint32_t overflow_user() noexcept {
    std::array<char, 64> number{};
    return parse_overflow(read_start(kOverflowFile, number));
}

bool is_one_user(std::uint32_t uid, std::string_view overflow_uid, std::string_view uid_map) noexcept {
    return uid != parse_overflow(overflow_uid) || maps_everybody(uid_map);
}

bool is_one_user(std::uint32_t uid) noexcept {
    std::array<char, 64> number{};
    std::array<char, 64> map{};
    return is_one_user(uid, read_start(kOverflowFile, number), read_start("/proc/self/uid_map", map));
}

bool is_user(std::uint32_t peer, std::uint32_t user) noexcept {
    return peer == user && is_one_user(peer);
}

}  // namespace cairn::broker
