#include "lib/connections/registry.hpp"

#include <gtest/gtest.h>

#include <set>

#include "lib/wire/ip_cm.hpp"

namespace cairn::connections {
namespace {

using cm::ServiceKind;

const wire::ServiceId kService = wire::ip_service(wire::IpProtocol::Tcp, 7471);
const net::IpAddress kPeer = net::IpAddress::parse("10.0.0.9").value();

std::optional<WorkerNumber> find(const Registry& registry, std::uint32_t name,
                                 ServiceKind kind = ServiceKind::Connections) {
    return registry.find({kind, kService, name}, kPeer);
}

TEST(Registry, AServiceThatIsTakenNamesItselfAndWhoHasIt) {
    Registry registry;
    EXPECT_EQ(find(registry, 1), std::nullopt);
    ASSERT_TRUE(registry.claim(ServiceKind::Connections, kService, 2, Sharing::Alone).ok());
    EXPECT_EQ(find(registry, 1), 2U);
    for (const Sharing sharing : {Sharing::Alone, Sharing::Shared}) {
        const Status taken = registry.claim(ServiceKind::Connections, kService, 3, sharing);
        ASSERT_FALSE(taken.ok());
        EXPECT_NE(taken.error().text().find("7471"), std::string::npos) << taken.error().text();
        EXPECT_NE(taken.error().text().find("worker 2"), std::string::npos);
        EXPECT_NE(taken.error().text().find("another"), std::string::npos);
    }
    registry.release(ServiceKind::Connections, kService, 2);
    EXPECT_EQ(find(registry, 1), std::nullopt);
    EXPECT_TRUE(registry.claim(ServiceKind::Connections, kService, 3, Sharing::Alone).ok());
}

TEST(Registry, ConnectionsAndDatagramsOfOneNumberAreTwoServices) {
    Registry registry;
    ASSERT_TRUE(registry.claim(ServiceKind::Connections, kService, 0, Sharing::Alone).ok());
    ASSERT_TRUE(registry.claim(ServiceKind::Datagrams, kService, 1, Sharing::Alone).ok());
    EXPECT_EQ(find(registry, 1), 0U);
    EXPECT_EQ(find(registry, 1, ServiceKind::Datagrams), 1U);
}

TEST(Registry, WorkersThatShareAServiceAllGetSomeAndCopiesOfARequestGoToTheSame) {
    Registry registry;
    for (const WorkerNumber worker : {2U, 0U, 5U}) {
        ASSERT_TRUE(registry.claim(ServiceKind::Connections, kService, worker, Sharing::Shared).ok());
    }
    EXPECT_FALSE(registry.claim(ServiceKind::Connections, kService, 5, Sharing::Shared).ok());
    EXPECT_FALSE(registry.claim(ServiceKind::Connections, kService, 1, Sharing::Alone).ok());
    std::set<WorkerNumber> seen;
    for (std::uint32_t name = 0; name < 64; ++name) {
        const auto worker = find(registry, name);
        ASSERT_TRUE(worker.has_value());
        EXPECT_EQ(find(registry, name), worker);
        seen.insert(*worker);
    }
    EXPECT_EQ(seen, (std::set<WorkerNumber>{0, 2, 5}));
    registry.release(ServiceKind::Connections, kService, 2);
    for (std::uint32_t name = 0; name < 64; ++name) {
        EXPECT_NE(find(registry, name), 2U);
    }
}

}  // namespace
}  // namespace cairn::connections
