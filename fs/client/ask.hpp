// Ask: a request to a shard, and the completion of that request.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// The shard that is to answer: the owner of a slot of the table, or a shard by its number.
struct Target {
    bool is_slot = true;
    std::uint16_t number = 0;

    [[nodiscard]] static Target slot(std::uint16_t slot) noexcept { return {true, slot}; }
    [[nodiscard]] static Target home(const FileId& file) noexcept { return {true, file.home_slot()}; }
    [[nodiscard]] static Target shard(std::uint16_t shard) noexcept { return {false, shard}; }
};

// Belongs to the code that submitted it. It does not move until its one completion, which happens in Road::poll().
class Ask {
public:
    Ask(const Target& to, const Request& what) noexcept : target(to), request(what) {}
    Ask(const Ask&) = delete;
    Ask& operator=(const Ask&) = delete;

    // Writes what the request brings to its slot's data, which begin at `at` in the channel's data. Called when the
    // request gets its slot. Called again, for the same slot, after the daemon was lost and is back.
    virtual void fill(std::span<std::uint8_t> /*data*/, std::uint32_t /*at*/) noexcept {}
    // Ends the ask. `error` is 0, an errno, or kErrorOtherGeneration. The answer and the slot's data are valid during
    // the call.
    virtual void complete(int error, std::span<const std::uint8_t> answer,
                          std::span<const std::uint8_t> data) noexcept = 0;

    Target target;
    Request request;  // its texts stay until it is completed

    // The router owns the members below.
    Ask* next = nullptr;
    Instant deadline{};
    std::uint16_t shard = 0;   // the target's shard
    std::uint8_t detours = 0;  // how often a shard said that it is not the target

protected:
    ~Ask() = default;
};

// Asks in the order in which they came.
class AskQueue {
public:
    [[nodiscard]] bool is_empty() const noexcept { return first_ == nullptr; }
    void push(Ask& ask) noexcept {
        ask.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &ask;
        last_ = &ask;
    }
    // Returns the first ask. The queue is not empty.
    [[nodiscard]] Ask& pop() noexcept { return *std::exchange(first_, first_->next); }
    // Moves all asks of another queue to the end of this one.
    void take_all(AskQueue& other) noexcept {
        while (!other.is_empty()) {
            push(other.pop());
        }
    }
    // Moves the asks whose deadline has passed to another queue.
    void take_due(Instant now, AskQueue& due) noexcept {
        AskQueue all = std::exchange(*this, {});
        while (!all.is_empty()) {
            Ask& ask = all.pop();
            (ask.deadline <= now ? due : *this).push(ask);
        }
    }

private:
    Ask* first_ = nullptr;
    Ask* last_ = nullptr;
};

}  // namespace cairn::fs
