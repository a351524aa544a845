// Messages on their way between the shards of a test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fs/placement/slot_table.hpp"
#include "lib/base/time.hpp"
#include "lib/sim/random.hpp"

namespace cairn::fs {

// Carries letters. Letters between two shards arrive in order, each a random time after it was sent.
class ClusterMail {
public:
    struct Letter {
        enum class What : std::uint8_t { Message, Lost, Found };
        What what = What::Message;
        fs::ShardNumber from = 0;
        fs::ShardNumber to = 0;
        std::vector<std::uint8_t> bytes{};
    };

    explicit ClusterMail(std::uint64_t seed) : random_(seed) {}

    // Sets a function that sees each posted letter, and returns whether the letter arrives.
    void set_watch(std::function<bool(const Letter&)> watch) { watch_ = std::move(watch); }

    void post(Letter letter, Instant now) {
        messages_ += letter.what == Letter::What::Message ? 1 : 0;
        if (watch_ && !watch_(letter)) {
            return;
        }
        Instant& last = last_[{letter.from, letter.to}];
        last = std::max(last, now + microseconds(static_cast<std::int64_t>(random_.between(1, 200))));
        mail_.emplace(last, std::move(letter));
    }
    // Returns the next letter that has arrived.
    [[nodiscard]] std::optional<Letter> take(Instant now) {
        if (mail_.empty() || mail_.begin()->first > now) {
            return std::nullopt;
        }
        std::optional<Letter> letter(std::move(mail_.begin()->second));
        mail_.erase(mail_.begin());
        return letter;
    }
    // Drops all letters to a shard and from it.
    void lose(fs::ShardNumber shard) {
        std::erase_if(mail_, [&](const auto& mail) { return mail.second.from == shard || mail.second.to == shard; });
    }
    [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }  // number of posted letters

private:
    sim::Random random_;
    std::uint64_t messages_ = 0;
    std::function<bool(const Letter&)> watch_{};
    std::multimap<Instant, Letter> mail_;
    std::map<std::pair<fs::ShardNumber, fs::ShardNumber>, Instant> last_;
};

}  // namespace cairn::fs
