// A node that runs the case of its argument --case: misuse by programs, and programs with an event loop of their own.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <stdexcept>

#include "apps/node/node.hpp"

using namespace cairn;

namespace {

struct Pair {
    std::uint32_t left;
    std::uint32_t right;
};
constexpr rpc::Method<Pair, std::uint64_t> kAdd{1};
constexpr rpc::Method<Pair, std::uint64_t> kMultiply{2};

struct Sums {
    std::uint64_t add(const Pair& pair) { return std::uint64_t{pair.left} + pair.right; }
    std::uint64_t multiply(const Pair& pair) { return std::uint64_t{pair.left} * pair.right; }
};

Sums sums;
std::string wanted;
std::string peer;
std::string silent_peer;

// Opens two services, each with its own method.
Status serve_two(node::NodeWorker& worker) {
    const Result<erpc::Endpoint*> adder = worker.open_service(11);
    const Result<erpc::Endpoint*> multiplier = worker.open_service(12);
    if (!adder.ok() || !multiplier.ok()) {
        return adder.ok() ? multiplier.error() : adder.error();
    }
    const Status served = rpc::serve<kAdd, &Sums::add>(*adder.value(), sums);
    return served.ok() ? rpc::serve<kMultiply, &Sums::multiply>(*multiplier.value(), sums) : served;
}

rpc::Task<> call_two(node::NodeWorker& worker) {
    const Result<SessionId> adder = co_await worker.connect(peer, 11);
    const Result<SessionId> multiplier = co_await worker.connect(peer, 12);
    if (!adder.ok() || !multiplier.ok()) {
        worker.fail(adder.ok() ? multiplier.error() : adder.error());
        co_return;
    }
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const Pair pair{i, i + 1};
        const auto sum = co_await worker.invoke(adder.value(), kAdd, pair);
        const auto product = co_await worker.invoke(multiplier.value(), kMultiply, pair);
        total += sum.value.value_or(0) + product.value.value_or(0);
    }
    const auto unknown = co_await worker.invoke(adder.value(), kMultiply, Pair{2, 3});
    fmt::print("worker {}: {}, {}\n", worker.number(), total,
               unknown.status == rpc::CallStatus::NoHandler ? "no handler" : "a handler");
    worker.stop();
}

// Ends the program with an error once the host has not answered.
rpc::Task<> call_nobody(node::NodeWorker& worker) {
    const Result<SessionId> session = co_await worker.connect(silent_peer, 11);
    worker.fail(session.ok() ? Error{"somebody answered", ""} : session.error());
}

// An event loop that waits for one worker's descriptor, and for its own deadline.
Status poll_one(node::Node& node) {
    node::NodeWorker& worker = *node.workers().front();
    const Result<int> descriptor = worker.descriptor();
    if (!descriptor.ok()) {
        return descriptor.error();
    }
    std::uint64_t sleeps = 0;
    while (!node.stopping(node.now())) {
        if (worker.run_turn(node.now())) {
            continue;
        }
        const Instant due = std::min(worker.prepare_sleep(node.now()), node.now() + milliseconds(100));
        pollfd waited{descriptor.value(), POLLIN, 0};
        const std::int64_t wait_ns = (due - node.now()).ns;
        ::poll(&waited, 1, wait_ns <= 0 ? 0 : static_cast<int>(wait_ns / 1'000'000 + 1));
        ++sleeps;
    }
    fmt::print("{}\n", sleeps > 100 ? "slept" : "never slept");
    return Nothing{};
}

Status set_up(node::NodeWorker& worker) {
    if (wanted == "serve" || wanted == "serve-by-poll") {
        return serve_two(worker);
    }
    if (wanted == "call" || wanted == "call-by-poll") {
        if (!silent_peer.empty()) {
            rpc::start(call_nobody(worker));
        }
        rpc::start(call_two(worker));
        return Nothing{};
    }
    if (wanted == "twice") {
        const Status first = worker.serve(11, {});
        return first.ok() ? worker.serve(11, {}) : first;
    }
    if (wanted == "second-worker-alone") {
        return worker.number() == 1 ? worker.serve(11, {}) : Status(Nothing{});
    }
    if (wanted == "throws") {
        const Status served = worker.serve(11, {});
        throw std::runtime_error("the set-up of service 11 found no table");
    }
    return Error{fmt::format("--case {} is not known", wanted), "give one of the test's"};
}

}  // namespace

int main(int argc, char** argv) {
    node::Node node("node-cases", "does what --case says");
    node.needed_argument("--case", wanted, "serve, call, ...");
    node.argument("--peer", peer, "the server's IP address");
    node.argument("--silent-peer", silent_peer, "a host that does not answer, asked first");
    const bool by_poll =
        std::any_of(argv, argv + argc, [](std::string_view text) { return text.ends_with("-by-poll"); });
    return by_poll ? node.run(argc, argv, set_up, poll_one) : node.run(argc, argv, set_up);
}
