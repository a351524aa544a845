#include "fs/daemon/key_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/owned_fd.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kLeastKeyBytes = 16;
constexpr std::size_t kMostKeyBytes = 4096;

}  // namespace

Result<SipKey> read_key_file(const std::string& path) {
    const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, kMostKeyBytes> bytes{};
    struct stat facts {};
    const ssize_t length =
        file.is_open() && ::fstat(file.get(), &facts) == 0 ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
    if (length < 0) {
        return Error{fmt::format("cannot read the key file '{}': {}", path, std::strerror(errno)),
                     "name a file that this user may read"};
    }
    if ((facts.st_mode & 0077U) != 0) {
        return Error{fmt::format("others may read the key file '{}'", path), "chmod 600 it, and draw a new key"};
    }
    if (static_cast<std::size_t>(length) < kLeastKeyBytes) {
        return Error{fmt::format("the key file '{}' has {} bytes", path, length),
                     fmt::format("put {} or more into it: head -c 32 /dev/urandom", kLeastKeyBytes)};
    }
    SipKey key{static_cast<std::uint64_t>(length), 0};
    for (std::size_t at = 0; at < static_cast<std::size_t>(length); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
        key = {sip_hash(key, word, std::uint64_t{0}), sip_hash(key, word, std::uint64_t{1})};
    }
    return key;
}

}  // namespace cairn::fs
