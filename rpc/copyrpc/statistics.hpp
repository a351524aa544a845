// The counters of an endpoint.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/telemetry/counter_list.hpp"
#include "rpc/copyrpc/breaches.hpp"
#include "rpc/linked/links.hpp"
#include "rpc/linked/request_counters.hpp"

namespace cairn::copyrpc {

// Counts batches by their number of messages, in powers of two: none, 1, 2 to 3, 4 to 7 and so on.
struct BatchSizes {
    static constexpr std::size_t kClasses = 12;

    void count(std::uint32_t messages) noexcept {
        ++batches[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(messages)), kClasses - 1)];
    }
    // Returns the smallest number of messages of a class.
    [[nodiscard]] static constexpr std::uint32_t least(std::size_t which) noexcept {
        return which == 0 ? 0 : 1U << (which - 1);
    }

    std::array<telemetry::Counter, kClasses> batches{};
};

// The worker's thread counts; any thread may read.
struct Statistics : rpc::RequestCounters {
    telemetry::CounterSet<Breach> breaches{};
    rpc::LinkCounters links{};
    telemetry::Counter requests_sent;
    telemetry::Counter responses_received;
    telemetry::Counter calls_failed;
    telemetry::Counter late_answers;        // to calls that were cancelled or had passed their deadline
    telemetry::Counter never_answering;     // sessions that ended for what their ended calls held
    telemetry::Counter requests_fetched;    // handled requests that were READ at their callers
    telemetry::Counter answers_written;     // written to callers' rooms, by themselves
    telemetry::Counter answers_put_off;     // with Flow::Read, because the peer's ring was full
    telemetry::Counter requests_held_back;  // with Flow::Read, while earlier answers took their session's memory
    telemetry::Counter words_read;          // with Flow::Read
    telemetry::Counter answers_given_up;    // for want of memory
    struct {
        telemetry::Counter reads;
        telemetry::Counter writes;
    } one_sided{};  // operations that programs posted
    telemetry::Counter batches_sent;
    BatchSizes batch_sizes{};

    [[nodiscard]] telemetry::CounterList list_counters() const;
};

}  // namespace cairn::copyrpc
