// Sends a text to cairn-hello-server and prints the answer.
#include <fmt/format.h>

#include "apps/node/node.hpp"

using namespace cairn;

namespace {

constexpr std::uint8_t kEcho = 1;
std::string peer, text = "hello";
std::uint32_t service = 7;

void on_answer(void* worker, const rpc::CallResult& result) {
    const bool answered = result.status == rpc::CallStatus::Ok;
    fmt::print("{} after {} us\n", answered ? node::text_of(result.response) : "no answer", result.latency.ns / 1000);
    static_cast<node::NodeWorker*>(worker)->stop(answered ? 0 : 1);
}

void on_connected(void*, node::NodeWorker& worker, const Result<SessionId>& session) {
    const rpc::Call call{.type = kEcho, .request = node::bytes_of(text), .completion = on_answer, .context = &worker};
    if (!session.ok()) {
        worker.fail(session.error());
    } else if (worker.post(session.value(), call).verdict != rpc::PostVerdict::Posted) {
        worker.fail({"the text is too long", "give a shorter --text"});
    }
}

}  // namespace

int main(int argc, char** argv) {
    node::Node node("cairn-hello-client", "sends a text to cairn-hello-server and prints the answer");
    node.needed_argument("--peer", peer, "the server's IP address");
    node.argument("--service", service, "the server's number");
    node.argument("--text", text, "what to send");
    return node.run(argc, argv, [](node::NodeWorker& worker) -> Status {
        worker.connect(peer, service, on_connected, nullptr);
        return Nothing{};
    });
}
