// The client of client.cpp by co_await: sends a text as often as asked for, one call after the other.
#include <fmt/format.h>

#include "apps/node/node.hpp"

using namespace cairn;

namespace {

constexpr std::uint8_t kEcho = 1;
std::string peer, text = "hello";
std::uint32_t service = 7, count = 3;

rpc::Task<> talk(node::NodeWorker& worker) {
    const Result<SessionId> server = co_await worker.connect(peer, service);
    if (!server.ok()) {
        worker.fail(server.error());
        co_return;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const rpc::CallResult result = co_await worker.call(server.value(), kEcho, node::bytes_of(text));
        if (result.status != rpc::CallStatus::Ok) {
            worker.fail({"the server did not answer", "look at its messages"});
            co_return;
        }
        fmt::print("{} after {} us\n", node::text_of(result.response), result.latency.ns / 1000);
    }
    worker.stop();
}

}  // namespace

int main(int argc, char** argv) {
    node::Node node("cairn-hello-await", "sends a text to cairn-hello-server, time and again");
    node.needed_argument("--peer", peer, "the server's IP address");
    node.argument("--service", service, "the server's number");
    node.argument("--text", text, "what to send");
    node.argument("--count", count, "how often");
    return node.run(argc, argv, talk);
}
