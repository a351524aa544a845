// Asks that coroutines await.
#pragma once

#include <concepts>
#include <coroutine>
#include <vector>

#include "fs/client/ask.hpp"
#include "fs/client/outcome.hpp"
#include "fs/client/road.hpp"

namespace cairn::fs {

// An unparsed answer, for callers that parse it themselves. Valid until the coroutine next waits.
struct RawAnswer {
    std::span<const std::uint8_t> bytes{};
};

// Parses an answer. Returns 0, or EIO if the bytes are no such answer.
template <class Answer>
[[nodiscard]] int read_answer(std::span<const std::uint8_t> bytes, Answer& answer) noexcept {
    if constexpr (std::same_as<Answer, RawAnswer>) {
        answer.bytes = bytes;
        return 0;
    } else {
        return parse_answer(bytes, answer) ? 0 : EIO;
    }
}

// co_await Asking<WalkAnswer>(road, Target::slot(...), WalkRequest{...}) yields an Outcome<WalkAnswer>. Texts in the
// answer are valid until the coroutine next waits.
template <class Answer>
class [[nodiscard]] Asking final : public Ask {
public:
    Asking(Road& road, const Target& to, const Request& what) noexcept : Ask(to, what), road_(road) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) noexcept {
        waiting_ = waiting;
        road_.submit(*this);
    }
    [[nodiscard]] Outcome<Answer> await_resume() const noexcept { return outcome_; }

    void complete(int error, std::span<const std::uint8_t> answer,
                  std::span<const std::uint8_t> /*data*/) noexcept override {
        outcome_.error = error != 0 ? error : read_answer(answer, outcome_.value);
        waiting_.resume();  // destroys self
    }

private:
    Road& road_;
    Outcome<Answer> outcome_;
    std::coroutine_handle<> waiting_{};
};

// One request to every shard of the file system, to all at once. co_await yields 0 or the first error once all shards
// have answered.
template <class Answer>
class AskingAll {
public:
    AskingAll(Road& road, const Request& what) : road_(road) {
        const std::uint32_t shards = road.view().table().shards();
        parts_.reserve(shards);
        for (std::uint32_t shard = 0; shard != shards; ++shard) {
            parts_.push_back(std::make_unique<Part>(*this, Target::shard(static_cast<ShardNumber>(shard)), what));
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return parts_.empty(); }
    void await_suspend(std::coroutine_handle<> waiting) noexcept {
        waiting_ = waiting;
        left_ = parts_.size();
        for (const auto& part : parts_) {
            road_.submit(*part);
        }
    }
    [[nodiscard]] int await_resume() const noexcept { return error_; }

    [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
    [[nodiscard]] const Answer& operator[](std::size_t shard) const noexcept { return parts_[shard]->answer; }

private:
    struct Part final : Ask {
        Part(AskingAll& of, const Target& to, const Request& what) noexcept : Ask(to, what), all(of) {}
        void complete(int error, std::span<const std::uint8_t> bytes,
                      std::span<const std::uint8_t> /*data*/) noexcept override {
            error = error != 0 ? error : read_answer(bytes, answer);
            all.error_ = all.error_ != 0 ? all.error_ : error;
            if (--all.left_ == 0) {
                all.waiting_.resume();  // may destroy all
            }
        }
        AskingAll& all;
        Answer answer{};
    };

    Road& road_;
    std::vector<std::unique_ptr<Part>> parts_;
    std::size_t left_ = 0;
    int error_ = 0;
    std::coroutine_handle<> waiting_{};
};

}  // namespace cairn::fs
