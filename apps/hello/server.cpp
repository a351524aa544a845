// Answers each request with its own bytes.
#include "apps/node/node.hpp"

using namespace cairn;

namespace {

constexpr std::uint8_t kEcho = 1;

void echo(void*, const erpc::Request& request) {
    if (!request.endpoint.answer(request.handle, request.payload, request.now)) {  // no memory is left
        request.endpoint.refuse(request.handle, request.now);
    }
}

}  // namespace

int main(int argc, char** argv) {
    node::Node node("cairn-hello-server", "answers each request with the bytes that it was sent");
    std::uint32_t service = 7;
    node.argument("--service", service, "number by which clients find it");
    return node.run(argc, argv, [&](node::NodeWorker& worker) { return worker.serve(service, {{kEcho, echo}}); });
}
