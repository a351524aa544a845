// Node: a program that serves or calls over eRPC. It takes care of arguments, ports, workers and lcores.
//
//     int main(int argc, char** argv) {
//         node::Node node("greeter", "answers greetings");
//         return node.run(argc, argv, [](node::NodeWorker& worker) { return worker.serve(7, {{kGreet, greet}}); });
//     }
//
// The program takes EAL's arguments, then `--`, then Cairn's arguments (--port, --ip, --pcap, ...) and its own; --help
// lists them. Each lcore has a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/node/node_worker.hpp"

namespace cairn::app {
class Ports;
}

namespace cairn::node {

class Node {
public:
    // Sets a worker up. Called on the main thread for each worker, before any worker runs. An error ends the program
    // with exit status 2.
    using SetUp = std::function<Status(NodeWorker&)>;
    // Runs the workers instead of EAL's lcores, until stopping() returns true.
    using Loop = std::function<Status(Node&)>;

    Node(std::string name, std::string what_it_does);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node();

    // Adds an argument of the program's own. `value` holds the default and outlives run().
    void argument(const std::string& name, std::string& value, const std::string& what);
    void argument(const std::string& name, std::uint32_t& value, const std::string& what);
    // Adds an argument that must be given.
    void needed_argument(const std::string& name, std::string& value, const std::string& what);

    // Runs the program. Returns its exit status: the status given to NodeWorker::stop(), 0 after SIGINT or SIGTERM, or
    // 2 if the program could not begin.
    int run(int argc, char** argv, const SetUp& set_up);
    int run(int argc, char** argv, const SetUp& set_up, const Loop& loop);
    // Runs a client: starts the coroutine on each worker.
    int run(int argc, char** argv, rpc::Task<> (*client)(NodeWorker&));

    // Returns the workers, for a loop of the program's own. One thread runs each worker.
    [[nodiscard]] std::vector<std::unique_ptr<NodeWorker>>& workers() noexcept { return workers_; }
    // Returns whether all workers have finished or a signal came.
    [[nodiscard]] bool stopping(Instant now) const noexcept;
    // Returns the time by the clock of the workers' turns.
    [[nodiscard]] Instant now() const noexcept;

private:
    struct Arguments;
    class End;

    Result<int> start(int argc, char** argv, int first, const SetUp& set_up, const Loop& loop);
    Status make_workers(app::Ports& ports);
    Status announce_services();
    Status run_on_lcores();

    std::unique_ptr<Arguments> arguments_;
    Shared shared_;
    std::unique_ptr<app::Ports> ports_;
    std::vector<std::unique_ptr<NodeWorker>> workers_;
};

}  // namespace cairn::node
