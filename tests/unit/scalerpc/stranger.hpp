// A stranger: a host that makes connections to a server itself and writes by hand.
#pragma once

#include "tests/unit/scalerpc/many_clients.hpp"
#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::scalerpc {

struct Stranger : verbs::VerbsHost {
    static constexpr std::uint64_t kAnswersOffset = 4096;
    static constexpr std::uint64_t kScratch = 16384;

    explicit Stranger(const char* address) : VerbsHost(address, 99), qp(qps.emplace_back(make_qp()).get()) {}
    void ask(const BlockShape& shape, Instant now) {
        Hello hello;
        hello.shape = shape;
        hello.staged = {mr->address(), mr->rkey()};
        hello.answers = {mr->address() + kAnswersOffset, mr->rkey()};
        ask(hello, now);
    }
    void ask(const Hello& hello, Instant now) {
        const RawHello raw = hello.raw();
        verbs::ConnectTo to;
        to.remote = net::IpAddress::parse("10.0.0.2").value();
        to.port = kService;
        to.choice.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
        to.choice.private_data = {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
        ASSERT_TRUE(connector->connect(*qp, to, now).ok());
    }
    void look() {
        while (const std::optional<cm::Event> event = connector->poll_event()) {
            refused = refused || std::holds_alternative<cm::Rejected>(*event);
            ended = ended || std::holds_alternative<cm::DisconnectRequested>(*event);
        }
        verbs::Completion done;
        while (sends->poll({&done, 1}) != 0) {
            failed = failed || done.status != verbs::CompletionStatus::Success;
        }
    }
    [[nodiscard]] News welcome() { return Control::parse(memory().data() + kAnswersOffset + kWelcomeOffset)->news; }
    [[nodiscard]] News control() { return Control::parse(memory().data() + kAnswersOffset)->news; }
    // Returns the answer to the request of this sequence, if it is there.
    [[nodiscard]] std::optional<Answer> answer(const BlockShape& shape, std::uint32_t sequence) {
        Answer got;
        const std::span<const std::uint8_t> block =
            memory().subspan(kAnswersOffset + kControlBytes + shape.end_of(sequence) - shape.bytes, shape.bytes);
        return read_answer(block, sequence, got) == Look::There ? std::optional<Answer>(got) : std::nullopt;
    }
    void write(std::span<const std::uint8_t> bytes, std::uint64_t remote, Rkey rkey) {
        std::copy(bytes.begin(), bytes.end(), memory().begin() + kScratch);
        const std::array<verbs::Sge, 1> pieces{mr->sge(kScratch, static_cast<std::uint32_t>(bytes.size()))};
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::RdmaWrite;
        request.sges = pieces;
        request.remote_address = remote;
        request.rkey = rkey;
        EXPECT_EQ(qp->post_send(request), verbs::PostVerdict::Posted);
    }
    void write_entry(const Entry& entry) {
        const RawEntry raw = entry.raw();
        write({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, welcome().grant.address,
              welcome().grant.rkey);
    }

    verbs::Qp* qp;  // one of `qps`, which end after the connector
    bool refused = false;
    bool ended = false;
    bool failed = false;
};

class ScalerpcStranger : public ManyClients {
protected:
    // Begins with this many honest clients in addition.
    void meet(const EndpointConfig& config, std::uint32_t clients = 1) {
        shape = config.shape;
        begin(config, clients);
        stranger.port.join(server->port);
        server->port.join(stranger.port);
        stranger.ask(shape, now);
        run_all(milliseconds(3));
        ASSERT_EQ(stranger.welcome().kind, News::Kind::Welcome);
    }
    void run_all(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(5)) {
            client->turn(now);
            server->turn(now);
            stranger.worker->turn(now);
            stranger.look();
        }
    }
    std::span<std::uint8_t> staged(std::uint32_t sequence) {
        return stranger.memory().subspan(shape.end_of(sequence) - shape.bytes, shape.bytes);
    }
    Entry entry(std::uint32_t first, std::uint32_t count, std::uint32_t acknowledged = 0) {
        return {stranger.mr->address() + std::uint64_t{shape.index_of(first)} * shape.bytes, first, count, 100,
                acknowledged};
    }
    // Stages a request that the server executes, which begins the stranger's slice.
    void enter_slice() {
        const std::uint64_t tag = ++tags;
        std::array<std::uint8_t, 16> payload{};
        std::memcpy(payload.data(), &tag, sizeof(tag));
        (void)put_request({0, kEcho, 0, payload}, kStaged, staged(0));
        stranger.write_entry(entry(0, 1));
        run_all(milliseconds(1));
        const std::optional<Answer> answer = stranger.answer(shape, 0);
        ASSERT_TRUE(answer.has_value());
        ASSERT_EQ(answer->news.kind, News::Kind::Grant);
        grant = answer->news;
    }
    // Begins its slice; the other clients ask until the slice is over.
    void outlast_slice(Duration notice_timeout, Duration span) {
        EndpointConfig config = small(32);
        config.notice_timeout = notice_timeout;
        meet(config, 20);
        enter_slice();
        again = true;
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            post(i);
        }
        run_all(span);
    }
    // Writes a request of the slice as a client does.
    void write_request(const Request& request, std::uint32_t epoch) {
        std::vector<std::uint8_t> block(shape.bytes);
        (void)put_request(request, epoch, block);
        stranger.write(block, grant.grant.address + shape.end_of(request.sequence) - shape.bytes, grant.grant.rkey);
    }
    // Checks that an honest client is still served.
    void expect_service() {
        const std::size_t before = count(CallStatus::Ok);
        post(0);
        run_all(milliseconds(3));
        EXPECT_EQ(count(CallStatus::Ok), before + 1);
    }
    // Returns the server's end of the stranger's session, as long as it has the place of its grant.
    Session* of_stranger() {
        const Pools& pools = server->endpoint->slices().pools();
        for (const std::uint8_t pool : {std::uint8_t{0}, std::uint8_t{1}}) {
            for (Session* const session : pools.tenants(pool)) {
                if (pools.region().address() + pools.offset_of(*session->guest->berth) == grant.grant.address) {
                    return session;
                }
            }
        }
        return nullptr;
    }
    std::uint64_t breaches(Breach breach) { return counted().breaches.of(breach); }

    Stranger stranger{"10.0.0.9"};
    BlockShape shape{};
    News grant{};
};

}  // namespace cairn::scalerpc
