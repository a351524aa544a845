// eRPC's directory over a wire in memory: services that are found, services that are not, the reasons, and losses.
#include "rpc/erpc/directory.hpp"

#include <gtest/gtest.h>

#include "lib/wire/mad.hpp"
#include "rpc/erpc/header.hpp"
#include "tests/unit/erpc/host.hpp"

namespace cairn::erpc {
namespace {

using Outcome = ServiceAnswer::Outcome;

struct DirectoryTest : testing::Test {
    static constexpr std::uint16_t kName = 31850;
    static constexpr ServiceOffer kOffer{Qpn{0x1100}, Qkey{0x205}, 3};

    DirectoryTest() {
        client.port.join(server.port);
        server.port.join(client.port);
        client_home = connections::Home::create(connections::Agent::create(), *client.worker, {}).value();
        server_home = connections::Home::create(connections::Agent::create(), *server.worker, {}).value();
        asks = std::make_unique<Directory>(*client_home);
        tells = std::make_unique<Directory>(*server_home);
    }
    // Asks, and lets time pass until there is an answer.
    ServiceAnswer answer(std::uint16_t name = kName) {
        EXPECT_TRUE(asks->ask(server.port.local_address(), name, now).ok());
        for (const Instant end = now + seconds(20); now < end; now = now + milliseconds(10)) {
            client.turn(now);
            server.turn(now);
            if (const std::optional<ServiceAnswer> got = asks->poll_answer()) {
                return *got;
            }
        }
        ADD_FAILURE() << "no answer";
        return {};
    }

    Host client{"10.0.0.1", 1};
    Host server{"10.0.0.2", 2};
    std::unique_ptr<connections::Home> client_home;
    std::unique_ptr<connections::Home> server_home;
    std::unique_ptr<Directory> asks;
    std::unique_ptr<Directory> tells;
    Instant now{1'000'000};
};

TEST_F(DirectoryTest, TellsWhoeverAsksWhichQueuePairsServe) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    for (int i = 0; i < 3; ++i) {
        const ServiceAnswer got = answer();
        EXPECT_EQ(got.outcome, Outcome::Found);
        EXPECT_EQ(got.offer.qpn, kOffer.qpn);
        EXPECT_EQ(got.offer.qkey, kOffer.qkey);
        EXPECT_EQ(got.offer.workers, kOffer.workers);
    }
    EXPECT_LT(now, Instant{1'000'000} + milliseconds(100));
}

TEST_F(DirectoryTest, ANameThatNobodyHasIsRefusedAtOnce) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    EXPECT_EQ(answer(kName + 1).outcome, Outcome::NoService);
    EXPECT_LT(now, Instant{1'000'000} + milliseconds(100));
}

TEST_F(DirectoryTest, AHostThatDoesNotAnswerIsGivenUp) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    server.port.fate = [](std::uint64_t) { return 0; };
    EXPECT_EQ(answer().outcome, Outcome::Silent);
    EXPECT_GT(now, Instant{} + seconds(5));
}

TEST_F(DirectoryTest, ALostQuestionIsAskedAgain) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    client.port.fate = [](std::uint64_t number) { return number < 2 ? 0 : 1; };
    EXPECT_EQ(answer().outcome, Outcome::Found);
    EXPECT_LT(now, Instant{} + seconds(2));
}

TEST_F(DirectoryTest, ANewQuestionReplacesTheLast) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    ASSERT_TRUE(asks->ask(server.port.local_address(), kName + 1, now).ok());
    EXPECT_EQ(answer().outcome, Outcome::Found);
    EXPECT_FALSE(asks->poll_answer().has_value());
}

TEST_F(DirectoryTest, NobodyCanBeAskedWhoIsNoHostOrOfAnotherFamily) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    for (const char* const nobody : {"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "2001:db8::1"}) {
        EXPECT_FALSE(asks->ask(net::IpAddress::parse(nobody).value(), kName, now).ok()) << nobody;
    }
    EXPECT_EQ(answer().outcome, Outcome::Found);
}

TEST_F(DirectoryTest, ANameIsServedOnce) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    EXPECT_FALSE(tells->serve(kName, kOffer).ok());
    EXPECT_TRUE(tells->serve(kName + 1, kOffer).ok());
}

// Several directories live at the same time if they serve under different names.
TEST_F(DirectoryTest, SeveralShareAHomeAndTheirNamesDiffer) {
    ASSERT_TRUE(tells->serve(kName, kOffer).ok());
    Directory other(*server_home);
    EXPECT_FALSE(other.serve(kName, kOffer).ok());
    ServiceOffer offer = kOffer;
    offer.workers = 1;
    EXPECT_TRUE(other.serve(kName + 1, offer).ok());
    EXPECT_EQ(answer(kName).offer.workers, kOffer.workers);
    EXPECT_EQ(answer(kName + 1).offer.workers, 1);
    Directory also(*client_home);
    ASSERT_TRUE(also.ask(server.port.local_address(), kName + 1, now).ok());
    EXPECT_EQ(answer(kName).offer.workers, kOffer.workers);
    const std::optional<ServiceAnswer> got = also.poll_answer();  // each directory has its own answer
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->offer.workers, 1);
}

// Answers every question at queue pair 1, as a host with a service of that name and this private data.
class Foreign final : public roce::UdReceiver {
public:
    Foreign(Host& host, std::uint16_t name, std::span<const std::uint8_t> private_data) : host_(host) {
        roce::UdConfig config;
        config.qpn = wire::kGeneralServicesQpn;
        config.qkey = wire::kGeneralServicesQkey;
        config.path_mtu_bytes = 256;
        qp_ = host.worker->datagrams().create_qp(config, *this).value();
        EXPECT_EQ(manager_.datagrams().listen(wire::ip_service(wire::IpProtocol::Udp, name), {},
                                              cm::DatagramService{Qpn{5}, Qkey{6}, private_data}),
                  std::nullopt);
    }
    ~Foreign() override { host_.worker->datagrams().destroy_qp(qp_); }

    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override {
        for (const roce::UdDatagram& one : datagrams) {
            port::Path* const path = one.packet->path;
            manager_.on_mad({path->key().local, path->key().remote}, {one.payload, one.payload_bytes}, now);
            const std::optional<cm::OutMad> mad = manager_.poll_transmit();
            const port::PacketRef buffer = host_.worker->sender().take();
            const wire::RawUd header = qp_->make_header({path, wire::kGeneralServicesQpn, wire::kGeneralServicesQkey});
            std::memcpy(buffer.data, &header, sizeof(header));
            std::memcpy(buffer.data + sizeof(header), mad->bytes.data(), mad->bytes.size());
            host_.worker->sender().send(buffer, path, sizeof(header) + mad->bytes.size() + port::kIcrcBytes, {}, now);
        }
    }

private:
    Host& host_;
    cm::Manager manager_{cm::Config{}};
    roce::UdEntry* qp_ = nullptr;
};

TEST_F(DirectoryTest, OtherServicesOfTheNameAndOtherVersionsAreToldApart) {
    const auto outcome_with = [this](std::span<const std::uint8_t> private_data) {
        const Foreign foreign(server, kName, private_data);
        return answer().outcome;
    };
    tells.reset();
    server_home.reset();
    EXPECT_EQ(outcome_with({}), Outcome::NotErpc);
    std::array<std::uint8_t, 8> offer{'e', 'R', 'P', 'C', 1, kHeaderVersion, 0, 1};
    EXPECT_EQ(outcome_with(offer), Outcome::Found);
    offer[5] = kHeaderVersion + 1;
    EXPECT_EQ(outcome_with(offer), Outcome::OtherVersion);
    offer = {'e', 'R', 'P', 'C', 1, kHeaderVersion, 0, 0};
    EXPECT_EQ(outcome_with(offer), Outcome::NotErpc);
    offer = {'e', 'R', 'P', 'X', 1, kHeaderVersion, 0, 1};
    EXPECT_EQ(outcome_with(offer), Outcome::NotErpc);
}

}  // namespace
}  // namespace cairn::erpc
