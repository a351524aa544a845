#include "fs/placement/placement.hpp"

#include <algorithm>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kGolden = 2654435769U;   // 2^32 over the golden ratio
constexpr std::uint32_t kPlastic = 3242174889U;  // 2^32 over the plastic ratio; each number of a name gets another step

bool is_digit(char octet) noexcept {
    return octet >= '0' && octet <= '9';
}

// Removes the digits at the beginning. Returns their value modulo 2^32.
std::uint32_t take_number(std::string_view& rest) noexcept {
    std::uint32_t value = 0;
    while (!rest.empty() && is_digit(rest.front())) {
        value = value * 10 + static_cast<std::uint32_t>(rest.front() - '0');
        rest.remove_prefix(1);
    }
    return value;
}

// Hashes words of eight octets, one after the other.
class WordHash {
public:
    WordHash(const SipKey& key, std::uint64_t begin) noexcept : key_(key), hash_(begin) {}
    void put(char octet) noexcept {
        octets_[count_++] = octet;
        if (count_ == octets_.size()) {
            flush();
        }
    }
    [[nodiscard]] std::uint64_t finish() noexcept {
        flush();
        return hash_;
    }

private:
    void flush() noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, octets_.data(), count_);
        hash_ = sip_hash(key_, hash_, word, std::uint64_t{count_});
        count_ = 0;
    }

    const SipKey& key_;
    std::uint64_t hash_;
    std::array<char, 8> octets_{};
    std::size_t count_ = 0;
};

}  // namespace

std::uint32_t koyama_hash(std::string_view name) noexcept {
    std::uint32_t sum = 0;
    while (!name.empty()) {
        if (is_digit(name.front())) {
            sum += take_number(name);
        } else {
            sum += static_cast<std::uint8_t>(name.front());
            name.remove_prefix(1);
        }
    }
    return sum;
}

Placement::Placement(Spread spread, std::uint32_t daemons, const SipKey& key)
    : spread_(spread), daemons_(daemons), key_(key) {
    CAIRN_ASSERT(daemons != 0 && daemons <= kSlots);
    std::size_t place = 0;
    for (std::uint32_t daemon = 0; daemon != daemons; ++daemon) {
        for (std::uint32_t slot = daemon; slot < kSlots; slot += daemons) {
            by_daemon_[place++] = static_cast<std::uint16_t>(slot);
        }
    }
}

std::uint32_t Placement::even_hash(std::uint64_t directory, std::uint64_t directory_more,
                                   std::string_view name) const noexcept {
    WordHash hash(key_, sip_hash(key_, directory, directory_more));
    std::uint32_t numbers = 0;
    while (!name.empty()) {
        if (is_digit(name.front())) {
            numbers = numbers * kPlastic + take_number(name) * kGolden;
            hash.put('0');  // stands for a number
        } else {
            hash.put(name.front());
            name.remove_prefix(1);
        }
    }
    return static_cast<std::uint32_t>(hash.finish()) + numbers;
}

std::uint16_t Placement::slot_of(std::uint64_t directory, std::uint64_t directory_more,
                                 std::string_view name) const noexcept {
    if (spread_ == Spread::Koyama) {
        return static_cast<std::uint16_t>(koyama_hash(name) % (kSlots / daemons_ * daemons_));
    }
    const std::uint64_t hash = even_hash(directory, directory_more, name);
    return by_daemon_[(hash * kSlots) >> 32U];
}

}  // namespace cairn::fs
