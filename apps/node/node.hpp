// Node: a program that serves or calls over eRPC, in front of all that this takes: arguments, ports, workers, lcores.
//
//     int main(int argc, char** argv) {
//         node::Node node("greeter", "answers greetings");
//         return node.run(argc, argv, [](node::NodeWorker& worker) { return worker.serve(7, {{kGreet, greet}}); });
//     }
//
// It takes EAL's arguments, then `--`, then Cairn's (--port, --ip, --pcap, ...) and its own: see --help. There is a
// worker for each lcore.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/node/node_worker.hpp"

namespace cairn::app {
class Carrier;
}

namespace cairn::node {

class Node {
public:
    // Called on the main thread for each worker, before any of them runs. An error ends the program with exit status 2.
    using SetUp = std::function<Status(NodeWorker&)>;
    // Runs the workers instead of EAL's lcores, until stopping() says so.
    using Loop = std::function<Status(Node&)>;

    Node(std::string name, std::string what_it_does);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node();

    // The program's own arguments. `value` holds the default and outlives run().
    void argument(const std::string& name, std::string& value, const std::string& what);
    void argument(const std::string& name, std::uint32_t& value, const std::string& what);
    // The same for an argument that must be given.
    void needed_argument(const std::string& name, std::string& value, const std::string& what);

    // Returns the exit status: that of NodeWorker::stop(), 0 after SIGINT and SIGTERM, 2 for what could not begin.
    int run(int argc, char** argv, const SetUp& set_up);
    int run(int argc, char** argv, const SetUp& set_up, const Loop& loop);
    // For clients: begins the coroutine on each worker.
    int run(int argc, char** argv, rpc::Task<> (*client)(NodeWorker&));

    // For a loop of the program's own. Each worker has one thread.
    [[nodiscard]] std::vector<std::unique_ptr<NodeWorker>>& workers() noexcept { return workers_; }
    // Whether all workers have ended what they were told to end, or a signal came.
    [[nodiscard]] bool stopping(Instant now) const noexcept;
    // The clock of the workers' turns.
    [[nodiscard]] Instant now() const noexcept;

private:
    struct Arguments;
    class End;

    Result<int> start(int argc, char** argv, int first, const SetUp& set_up, const Loop& loop);
    Status make_workers(app::Carrier& carrier);
    Status announce_services();
    Status run_on_lcores();

    std::unique_ptr<Arguments> arguments_;
    Shared shared_;
    std::unique_ptr<app::Carrier> carrier_;
    std::vector<std::unique_ptr<NodeWorker>> workers_;
};

}  // namespace cairn::node
