// Measures how evenly names are spread over shards, under a key that is drawn anew.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "apps/fs/bench.hpp"
#include "fs/placement/slot_table.hpp"
#include "lib/base/secret.hpp"

namespace cairn::fstool {

namespace {

constexpr std::uint32_t kShards = 100;
constexpr std::uint32_t kNames = 10'000;
constexpr std::uint32_t kRanks = 64;

// The names of a directory, at their shards.
class Crowd {
public:
    explicit Crowd(const SipKey& key) : placement_(fs::Spread::Even, kShards, key) {}
    void add(std::string_view name) {
        ++counts_[table_.owner(placement_.slot_of(0, 0, name))];
        ++all_;
    }
    // Returns the most names that a shard has, over the mean.
    [[nodiscard]] double most() const {
        return static_cast<double>(*std::ranges::max_element(counts_)) * kShards / all_;
    }

private:
    const fs::Placement placement_;
    const fs::SlotTable table_{kShards};
    std::array<std::uint32_t, kShards> counts_{};
    std::uint32_t all_ = 0;
};

double consecutive(const SipKey& key) {
    Crowd frames(key);
    for (std::uint32_t i = 0; i != kNames; ++i) {
        frames.add(fmt::format("out.{:08}", i));
    }
    Crowd files(key);
    for (std::uint32_t rank = 0; rank != kRanks; ++rank) {
        for (std::uint32_t i = 0; i != kNames / kRanks; ++i) {
            files.add(fmt::format("file.mdtest.{}.{}", rank, i));
        }
    }
    return std::max(frames.most(), files.most());
}

double strided(const SipKey& key) {
    double worst = 0;
    for (const std::uint32_t step : {2U, 10U, 64U, kShards, 128U, 1000U, fs::kSlots}) {
        Crowd frames(key);
        for (std::uint32_t i = 0; i != kNames; ++i) {
            frames.add(fmt::format("frame{}.png", i * step));
        }
        worst = std::max(worst, frames.most());
    }
    return worst;
}

double random(const SipKey& key) {
    std::mt19937_64 chance(key[0]);
    std::uniform_int_distribution<int> letter('a', 'z');
    Crowd names(key);
    for (std::uint32_t i = 0; i != kNames; ++i) {
        std::array<char, 8> name{};
        std::ranges::generate(name, [&] { return static_cast<char>(letter(chance)); });
        names.add({name.data(), name.size()});
    }
    return names.most();
}

}  // namespace

std::string measure_balance() {
    const SipKey key = draw_secret();
    return fmt::format("{{\"consecutive\": {:.3f}, \"strided\": {:.3f}, \"random\": {:.3f}}}", consecutive(key),
                       strided(key), random(key));
}

}  // namespace cairn::fstool
