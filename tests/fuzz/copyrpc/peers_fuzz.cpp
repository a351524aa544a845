// Bytes as the actions of three peers of a server; the input decides when they keep to the rules. Their batches have
// arbitrary numbers, are written to any place with any immediate, and name any memory of theirs, which they change.
// They answer calls of the server as they please, and end with or without notice. In all cases a request is executed
// once and lies in the server's memory. A peer that breaks a rule loses its connection with a reason, and a client that
// keeps to the rules gets its answers. Memory is bounded and is freed.
#include <array>

#include "tests/fuzz/copyrpc/fuzzed_server.hpp"
#include "tests/fuzz/copyrpc/peer.hpp"

namespace {

using namespace cairn;
using namespace cairn::copyrpc;

constexpr std::size_t kPeers = 3;

EndpointConfig config_of(Input& input) {
    const std::uint8_t bits = input.byte();
    EndpointConfig config;
    config.ring_bytes = kRing;
    config.flow = (bits & 1U) != 0 ? Flow::Read : Flow::Credit;
    config.receives = kReceives;
    config.sessions_max = kSessionsMost;
    config.calls_max = kCallsMost;
    config.message_bytes_max = (bits & 2U) != 0 ? kLongest : 0;
    config.answer_bytes = (bits & 2U) != 0 ? kLongest : 600;
    config.hold.messages = (bits & 4U) != 0 ? 4 : 0;
    config.peer_timeout = kLeastPeerTimeout;
    return config;
}

class World {
public:
    explicit World(Input& input) : input_(input), config_(config_of(input)) {
        for (test::WirePort* const port : {&client_.port, &strangers_.port}) {
            port->join(server_.port);
            server_.port.join(*port);
        }
        client_.connect(now_);
        run(microseconds(100));
        for (FuzzedPeer& peer : peers_) {
            peer.connect(input_, true, now_);
        }
        run(microseconds(100));
    }
    void step() {
        const std::uint8_t what = input_.byte();
        FuzzedPeer& peer = peers_[what / 16U % kPeers];
        switch (what % 16U) {
            case 0:
            case 1:
            case 2:
                return peer.ask(input_);
            case 3:
                return peer.answer(input_);
            case 4:
                return peer.speak(input_, false);
            case 5:
                return peer.write_anything(input_);
            case 6:
                return peer.change_own(input_);
            case 7:
                return server_.answer(input_.byte(), input_.byte(), now_);
            case 8:
                return client_.call(input_.byte(), now_);
            case 9:
                return server_.call(input_.byte(), input_.byte(), now_);
            case 10:
                return input_.byte() < 0x40U ? peer.end((what & 0x80U) != 0, now_)
                                             : peer.connect(input_, input_.byte() < 0xc0U, now_);
            case 11:
                return run(microseconds(input_.byte() * 8));
            default:
                if (what % 16U != 15U) {
                    peer.hear();
                }
                peer.speak(input_, true);
                return run(microseconds(10 * (1 + what / 64U)));
        }
    }
    // The others leave without notice.
    void finish() {
        for (FuzzedPeer& peer : peers_) {
            peer.end(false, now_);
        }
        client_.call(1, now_);
        for (int i = 0; i < 2000 && client_.is_waiting(); ++i) {
            server_.answer_all(now_);
            run(microseconds(50));
        }
        test::require(!client_.is_waiting());
        client_.end();
        server_.end();
    }

private:
    void run(Duration span) {
        for (const Instant end = now_ + span; now_ < end; now_ = now_ + microseconds(10)) {
            server_.turn(now_);
            client_.turn(now_);
            strangers_.turn(now_);
        }
    }

    Input& input_;
    const EndpointConfig config_;
    Instant now_{1'000'000'000};
    FuzzedServer server_{config_};
    HonestClient client_{config_};
    StrangerHost strangers_{"10.0.0.9", kPeers, kPeers* kPeerBytes};
    std::array<FuzzedPeer, kPeers> peers_{FuzzedPeer{strangers_, 0, config_.flow},
                                          FuzzedPeer{strangers_, 1, config_.flow},
                                          FuzzedPeer{strangers_, 2, config_.flow}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    World world(input);
    while (!input.empty()) {
        world.step();
    }
    world.finish();
    return 0;
}
