// Management datagrams that wait to be sent.
#pragma once

#include <deque>
#include <optional>

#include "lib/cm/types.hpp"
#include "lib/wire/cm_message.hpp"

namespace cairn::cm {

// push() never refuses. Code that reacts to peers or to time calls has_room() first, so that neither can fill the
// memory.
class Outbox {
public:
    static constexpr std::size_t kMostPerInput = 2;

    explicit Outbox(std::uint32_t limit) : limit_(limit) {}

    [[nodiscard]] bool has_room() const noexcept { return waiting_.size() + kMostPerInput <= limit_; }
    void push(const Route& route, const wire::MadBytes& bytes) { waiting_.push_back({route, bytes}); }
    void push(const Route& route, std::uint64_t transaction, const wire::CmMessage& message) {
        push(route, wire::CmMad{transaction, message}.bytes());
    }
    [[nodiscard]] std::optional<OutMad> pop() {
        if (waiting_.empty()) {
            return std::nullopt;
        }
        const OutMad first = waiting_.front();
        waiting_.pop_front();
        return first;
    }

private:
    std::size_t limit_;
    std::deque<OutMad> waiting_;
};

}  // namespace cairn::cm
