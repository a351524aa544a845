// Which sessions a server has opened, by their clients' tokens. Control path only: it allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

// Remembers those that ended last, too: a Connect that was under way for long must not open its session again, as
// copies of the session's requests may be under way as well, and would be executed again.
class ServerTokens {
public:
    enum class State : std::uint8_t { Unknown, Open, Ended };
    struct Found {
        State state = State::Unknown;
        std::uint32_t session = kNone;  // of an open one
    };

    explicit ServerTokens(std::size_t sessions_max) : ended_(sessions_max) { sessions_.reserve(sessions_max * 2); }

    [[nodiscard]] Found find(std::uint64_t token) const noexcept {
        const auto found = sessions_.find(token);
        if (found == sessions_.end()) {
            return {};
        }
        return {found->second == kNone ? State::Ended : State::Open, found->second};
    }
    void open(std::uint64_t token, std::uint32_t session) { sessions_.emplace(token, session); }
    void end(std::uint64_t token) {
        std::uint64_t& oldest = ended_[next_ended_];
        next_ended_ = (next_ended_ + 1) % ended_.size();
        if (find(oldest).state == State::Ended) {
            sessions_.erase(oldest);
        }
        sessions_[token] = kNone;
        oldest = token;
    }

private:
    std::unordered_map<std::uint64_t, std::uint32_t> sessions_;  // kNone: ended
    std::vector<std::uint64_t> ended_;                           // a ring of those that ended last
    std::size_t next_ended_ = 0;
};

}  // namespace cairn::erpc
