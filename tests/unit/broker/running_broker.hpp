// A broker on a thread of the test, and programs of its address.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "lib/broker/membership.hpp"
#include "lib/broker/server.hpp"
#include "lib/port/uring_port.hpp"
#include "lib/wire/bth.hpp"
#include "tests/support/loopback.hpp"

namespace cairn::broker {

inline bool comes(const std::function<bool()>& holds) {
    for (int tries = 0; tries < 2000; ++tries) {
        if (holds()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

class RunningBroker {
public:
    explicit RunningBroker(const Place& place, const HubConfig& config = {}, std::uint32_t user = geteuid())
        : RunningBroker(place, listen_soon(place), config, user) {}
    RunningBroker(const Place& place, OwnedFd listener, const HubConfig& config, std::uint32_t user) : place_(place) {
        server_ = std::move(Server::make(place, std::move(listener), config, user).value());
        running_ = server_.get();
        thread_ = std::thread([this] {
            server_->run([this] { return ends_.load(); });
            server_.reset();
            over_.store(true);
        });
    }
    ~RunningBroker() {
        ends_.store(true);
        const OwnedFd wakes_it = connect_to(place_, seconds(1));
        thread_.join();
    }
    // Listens at the name. It belongs to the previous broker until the kernel has closed all of that one's descriptors.
    [[nodiscard]] static OwnedFd listen_soon(const Place& place) {
        OwnedFd listener;
        EXPECT_TRUE(comes([&] { return (listener = listen_at(place)).is_open(); }));
        return listener;
    }
    // Returns a counter of the running broker.
    [[nodiscard]] std::uint64_t count(Counter counter) const { return running_->hub().counters().of(counter); }
    [[nodiscard]] bool is_over() const { return over_.load(); }

private:
    const Place place_;
    std::unique_ptr<Server> server_;
    const Server* running_ = nullptr;
    std::atomic<bool> ends_{false};
    std::atomic<bool> over_{false};
    std::thread thread_;
};

class ServerTest : public testing::Test {
protected:
    MembershipConfig config() const {
        MembershipConfig made;
        made.place = place;
        made.again_most = milliseconds(50);
        return made;
    }
    std::unique_ptr<Membership> join() const {
        auto joined = Membership::join(config());
        EXPECT_TRUE(joined.ok()) << (joined.ok() ? "" : joined.error().text());
        return joined.ok() ? std::move(joined.value().membership) : nullptr;
    }
    static std::unique_ptr<port::UringPort> open(const Membership& membership) {
        port::UringPortConfig own;
        own.mode = port::SocketMode::Plain;
        return std::move(port::UringPort::open(own, membership.queues(), membership.slot().value).value());
    }
    // A program with its port, and the number of a queue pair of its own.
    struct Program {
        std::unique_ptr<Membership> membership;
        std::unique_ptr<port::UringPort> port;
        std::uint32_t qpn = 0;
    };
    [[nodiscard]] Program enter(std::uint32_t number) const {
        Program made{join(), nullptr, 0};
        made.port = open(*made.membership);
        made.qpn = number << 8U | made.membership->slot().value;
        return made;
    }
    // Sends a datagram, or a batch of them, from an address next to the programs'.
    void send(const std::vector<std::uint32_t>& qpns) {
        constexpr std::size_t kBytes = 68;
        port::UringPortConfig own;
        own.local = beside;
        own.udp_port = place.udp_port;
        if (sender == nullptr) {
            sender = std::move(port::UringPort::open(own).value());
        }
        port::Path* const path = sender->open_path({beside, place.local, 0, 0}, now);
        std::vector<port::PacketRef> buffers(qpns.size());
        ASSERT_EQ(sender->allocate_burst(buffers), buffers.size());
        std::vector<port::TxPacket> packets(qpns.size());
        for (std::size_t i = 0; i < qpns.size(); ++i) {
            std::memset(buffers[i].data, 0x40, kBytes);
            reinterpret_cast<wire::RawBth*>(buffers[i].data)->resv8a = 0;
            reinterpret_cast<wire::RawBth*>(buffers[i].data)->dest_qpn.set(qpns[i]);
            packets[i].packet = buffers[i];
            packets[i].packet.path = path;
            packets[i].packet.len = kBytes;
        }
        ASSERT_EQ(sender->transmit_burst(packets, now), packets.size());
        sender->wait({}, -1);
    }
    // Returns the queue pairs of received datagrams, until `count` have come or none comes.
    std::vector<std::uint32_t> receive(port::UringPort& port, std::size_t count) {
        std::vector<std::uint32_t> qpns;
        std::array<port::PacketRef, 64> burst;
        comes([&] {
            const std::size_t got = port.receive_burst(burst, now);
            for (const port::PacketRef& packet : std::span(burst).first(got)) {
                EXPECT_TRUE(packet.icrc_ok);
                qpns.push_back(reinterpret_cast<const wire::RawBth*>(packet.data)->dest_qpn.get());
            }
            port.release_burst(std::span(burst).first(got));
            return qpns.size() >= count;
        });
        return qpns;
    }

    Place place{net::IpAddress::parse(test::loopback(1)).value(), test::own_udp_port()};
    net::IpAddress beside = net::IpAddress::parse(test::loopback(2)).value();
    std::unique_ptr<port::UringPort> sender;
    Instant now{1000};
};

}  // namespace cairn::broker
