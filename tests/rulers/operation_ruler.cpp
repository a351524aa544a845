// Measures the cost of a short operation of a reliable connection at both ends, without a device: two workers with a
// verbs device and its connections each, joined in memory.
//
//     operation_ruler write OPERATIONS [WINDOW]   RDMA WRITEs of 8 bytes, WINDOW of them at a time (32)
//     operation_ruler send OPERATIONS             SENDs of 8 bytes that the peer answers with the same, one at a time
//
// Under callgrind (--toggle-collect=*counted_part*) only the operations are counted, neither the set-up nor the end.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/connections/home.hpp"
#include "lib/verbs/connector.hpp"
#include "tests/rulers/memory_port.hpp"

namespace {

using namespace cairn;

constexpr std::uint32_t kBytes = 8;
constexpr std::uint32_t kSlots = 256;

// One end of the connection.
class End {
public:
    End(const char* address, std::uint8_t number, ruler::BufferStore& store) : port_(address, number, store) {}

    void meet(End& peer) { port_.connect(peer.port_); }
    void open() {
        roce::EngineConfig config;
        config.max_queue_pairs = 8;
        config.max_regions = 8;
        config.seed = {reinterpret_cast<std::uintptr_t>(this), 1};
        worker_ = worker::Worker::create(port_, config, {}).value();
        device_ = std::make_unique<verbs::Device>(*worker_);
        home_ = connections::Home::create(connections::Agent::create(), *worker_, {}).value();
        connector_ = std::make_unique<verbs::Connector>(*device_, *home_);
        pd_ = device_->create_pd();
        const verbs::Rights rights = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::LocalWrite;
        region_ = device_->register_memory(*pd_, memory_, rights).value();
        sends_ = device_->create_cq(kSlots).value();
        receives_ = device_->create_cq(kSlots).value();
        verbs::QpCapacity capacity;
        capacity.send_slots = kSlots;
        capacity.receive_slots = kSlots;
        capacity.max_sges = 1;
        qp_ = device_->create_qp(*pd_, capacity, {*sends_, *receives_}).value();
    }
    // Connects as the connector does for two peers that agree on everything.
    void connect(const End& peer, Instant now) {
        using verbs::Attribute;
        verbs::QpAttributes values;
        values.access = verbs::Rights{verbs::Right::RemoteWrite};
        values.dest_qpn = peer.qp_->qpn();
        values.ack_timeout = 14;
        values.selective = true;
        values.delayed_acks = true;
        port::Path* const path =
            port_.open_path({port_.local_address(), peer.port_.local_address(), port::kFirstUdpSourcePort, 0}, now);
        const auto step = [this, &values, path](verbs::QpState from, verbs::QpState to, verbs::AttributeSet more) {
            const verbs::AttributeSet required = roce::find_transition(from, to)->required;
            if (qp_->modify(to, required.with(more), values, required.has(Attribute::Path) ? path : nullptr)) {
                std::abort();
            }
        };
        step(verbs::QpState::Reset, verbs::QpState::Init, {});
        step(verbs::QpState::Init, verbs::QpState::Rtr,
             verbs::AttributeSet::of(Attribute::Selective, Attribute::DelayedAcks));
        step(verbs::QpState::Rtr, verbs::QpState::Rts, {});
        for (std::uint32_t i = 0; i < kSlots; ++i) {
            post_receive();
        }
    }
    void post_receive() noexcept {
        const std::array<verbs::Sge, 1> piece{region_->sge(0, kBytes)};
        verbs::ReceiveRequest request;
        request.sges = piece;
        check(qp_->post_receive(request));
    }
    void write(const End& peer) noexcept {
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::RdmaWrite;
        request.remote_address = peer.region_->address();
        request.rkey = peer.region_->rkey();
        post(request);
    }
    void send() noexcept {
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::Send;
        request.signalled = false;
        post(request);
    }
    // Returns how many operations ended, or how many messages came.
    [[nodiscard]] std::size_t ended() noexcept { return poll(*sends_); }
    [[nodiscard]] std::size_t came() noexcept { return poll(*receives_); }
    void turn(Instant now) noexcept { (void)worker_->turn(now); }

private:
    void post(verbs::SendRequest& request) noexcept {
        const std::array<verbs::Sge, 1> piece{region_->sge(0, kBytes)};
        request.sges = piece;
        check(qp_->post_send(request));
    }
    static void check(verbs::PostVerdict verdict) noexcept {
        if (verdict != verbs::PostVerdict::Posted) {
            std::abort();
        }
    }
    [[nodiscard]] std::size_t poll(verbs::Cq& queue) noexcept {
        const std::size_t count = queue.poll(done_);
        for (std::size_t i = 0; i < count; ++i) {
            if (done_[i].status != verbs::CompletionStatus::Success) {
                std::abort();
            }
        }
        return count;
    }

    std::array<verbs::Completion, 32> done_{};
    ruler::MemoryPort port_;
    std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(4096);
    std::unique_ptr<worker::Worker> worker_;
    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Connector> connector_;
    std::unique_ptr<verbs::Pd> pd_;
    std::unique_ptr<verbs::Cq> sends_;
    std::unique_ptr<verbs::Cq> receives_;
    std::unique_ptr<verbs::Mr> region_;
    std::unique_ptr<verbs::Qp> qp_;
};

class Loop {
public:
    Loop() {
        client_.meet(server_);
        server_.meet(client_);
        client_.open();
        server_.open();
        client_.connect(server_, now_);
        server_.connect(client_, now_);
    }
    void write(std::uint64_t count, std::uint64_t window) noexcept {
        std::uint64_t posted = 0;
        for (std::uint64_t ended = 0; ended < count; ended += client_.ended()) {
            for (; posted < count && posted - ended < window; ++posted) {
                client_.write(server_);
            }
            turn();
        }
    }
    void send(std::uint64_t count) noexcept {
        for (std::uint64_t i = 0; i < count; ++i) {
            client_.send();
            await(server_);
            server_.send();
            await(client_);
        }
    }

private:
    void turn() noexcept {
        now_ = now_ + nanoseconds(300);
        client_.turn(now_);
        server_.turn(now_);
    }
    void await(End& end) noexcept {
        while (end.came() == 0) {
            turn();
        }
        end.post_receive();
    }

    Instant now_{1'000'000};
    ruler::BufferStore store_;
    End client_{"10.77.0.2", 2, store_};
    End server_{"10.77.0.1", 1, store_};
};

// Runs the part that callgrind counts.
[[gnu::noinline]] void counted_part(Loop& loop, bool writes, std::uint64_t count, std::uint64_t window) {
    writes ? loop.write(count, window) : loop.send(count);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    const std::uint64_t window = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 32;
    if ((what != "write" && what != "send") || count == 0 || window == 0 || window > kSlots) {
        std::fputs("usage: write|send OPERATIONS [WINDOW]; a window of 1 to 256\n", stderr);
        return 2;
    }
    auto loop = std::make_unique<Loop>();
    what == "write" ? loop->write(2000, window) : loop->send(2000);
    counted_part(*loop, what == "write", count, window);
    std::printf("%llu operations\n", static_cast<unsigned long long>(count));
    return 0;
}
