// The registration of request types at a server: handlers, and room for their answers.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.hpp"
#include "rpc/common/request.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kRequestTypes = 256;

// The longest answer that an endpoint can send, and the setting that allows longer ones.
struct AnswerLimit {
    std::uint32_t bytes = 0;
    const char* remedy = "";

    // Judges a type's longest answer. Errors: the type's answers may be longer.
    [[nodiscard]] Status judge(std::uint8_t type, std::uint32_t response_bytes_max) const;
};

class BackgroundPool;

// Returns the error for a background handler of an endpoint without a pool.
[[nodiscard]] Error no_threads_for(std::uint8_t type);

// The part of an endpoint that the application fills in. Used on the worker's thread only.
template <class Endpoint>
class RequestTypes {
public:
    struct Entry {
        Handler<Endpoint> function = nullptr;
        BackgroundHandler background = nullptr;  // set if `function` is not
        void* context = nullptr;
        std::uint32_t response_bytes_max = 0;

        [[nodiscard]] bool registered() const noexcept { return function != nullptr || background != nullptr; }
    };

    // Sets the handler of a type, and replaces an earlier one of either kind.
    void set_handler(std::uint8_t type, Handler<Endpoint> handler, void* context) noexcept {
        set(type, {handler, nullptr, context, 0}, handler != nullptr);
    }
    // Sets the handler of a type with a known longest answer. eRPC takes room for that answer before it executes a
    // request of the type, so reserve() of that many bytes does not fail. Without room the request is put off until its
    // client asks again. Errors: the endpoint sends no answers of that length; then the type keeps its handler.
    Status set_handler(std::uint8_t type, Handler<Endpoint> handler, void* context, std::uint32_t response_bytes_max) {
        return judged(type, {handler, nullptr, context, response_bytes_max}, handler != nullptr);
    }
    // Sets a handler that runs on the endpoint's BackgroundPool. Room for a response of `response_bytes_max` is taken
    // before a request is handed over. Without room or a free job the request waits, or is put off until its client
    // asks again. Errors: as above; the endpoint has no pool.
    Status set_background_handler(std::uint8_t type, BackgroundHandler handler, void* context,
                                  std::uint32_t response_bytes_max) {
        const Status has_threads = judge_background(type, handler);
        return has_threads.ok() ? judged(type, {nullptr, handler, context, response_bytes_max}, handler != nullptr)
                                : has_threads;
    }

protected:
    RequestTypes(const AnswerLimit& limit, const BackgroundPool* threads) noexcept
        : limit_(limit), has_threads_(threads != nullptr) {}
    ~RequestTypes() = default;

    // True if a handler was ever registered. An endpoint without handlers takes no sessions.
    [[nodiscard]] bool serves() const noexcept { return serves_; }
    [[nodiscard]] const std::array<Entry, kRequestTypes>& handlers() const noexcept { return entries_; }
    [[nodiscard]] const AnswerLimit& answer_limit() const noexcept { return limit_; }
    // Judges a background handler. Errors: there is a handler, but no thread to run it.
    [[nodiscard]] Status judge_background(std::uint8_t type, BackgroundHandler handler) const {
        return handler == nullptr || has_threads_ ? Status(Nothing{}) : no_threads_for(type);
    }

private:
    void set(std::uint8_t type, const Entry& entry, bool serves) noexcept {
        serves_ = serves_ || serves;
        entries_[type] = entry;
    }
    Status judged(std::uint8_t type, const Entry& entry, bool serves) {
        const Status fits = limit_.judge(type, entry.response_bytes_max);
        if (fits.ok()) {
            set(type, entry, serves);
        }
        return fits;
    }

    AnswerLimit limit_;
    bool has_threads_;
    std::array<Entry, kRequestTypes> entries_{};
    bool serves_ = false;
};

}  // namespace cairn::rpc
