// Counters that clients add to: a service and its client. The source is the same on every RPC system of Cairn.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <vector>

#include "rpc/common/method.hpp"

namespace cairn::counters {

constexpr std::uint32_t kCounters = 16;

struct Addition {
    std::uint32_t counter;
    std::uint32_t amount;
};

// kAdd answers with the counter's total. kTotals answers with the totals of all counters from a number on.
constexpr rpc::Method<Addition, std::uint64_t> kAdd{1};
constexpr rpc::Method<std::uint32_t, std::vector<std::uint64_t>> kTotals{2, kCounters * sizeof(std::uint64_t)};

class Counters {
public:
    // Serves the counters, which outlive the endpoint. Errors: those of rpc::serve().
    template <class Endpoint>
    Status serve(Endpoint& endpoint) {
        const Status served = rpc::serve<kAdd, &Counters::add>(endpoint, *this);
        return served.ok() ? rpc::serve<kTotals, &Counters::totals>(endpoint, *this) : served;
    }

    // Adds to a counter. Numbers of peers are taken modulo kCounters.
    std::uint64_t add(const Addition& addition) { return totals_[addition.counter % kCounters] += addition.amount; }
    std::vector<std::uint64_t> totals(const std::uint32_t& first) {
        return {totals_.begin() + first % kCounters, totals_.end()};
    }

private:
    std::array<std::uint64_t, kCounters> totals_{};
};

// Adds 1, 2, ... `rounds` to the last two counters in turn. Prints each answer, and all totals of these two. Yields
// false if a call ended without an answer.
template <class Endpoint>
rpc::Task<bool> count(Endpoint& endpoint, SessionId server, const Instant& now, std::uint32_t rounds) {
    for (std::uint32_t i = 1; i <= rounds; ++i) {
        const Addition addition{kCounters - 1 - i % 2, i};
        const rpc::Typed<std::uint64_t> total = co_await rpc::invoke(endpoint, server, kAdd, addition, now);
        if (!total.value) {
            co_return false;
        }
        fmt::print("counter {}: {}\n", addition.counter, *total.value);
    }
    const rpc::Typed<std::vector<std::uint64_t>> totals =
        co_await rpc::invoke(endpoint, server, kTotals, kCounters - 2, now);
    if (totals.value) {
        fmt::print("totals: {}\n", fmt::join(*totals.value, " "));
    }
    co_return totals.value.has_value();
}

}  // namespace cairn::counters
