// Two UringPorts on the loopback in one process, in every mode and family, for tests of their exchange.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/port/uring_port.hpp"
#include "tests/support/loopback.hpp"

namespace cairn::port {

struct Setup {
    SocketMode mode;
    std::string here;
    std::string there;
};

inline std::string name_of(const testing::TestParamInfo<Setup>& info) {
    static constexpr std::array<const char*, 3> kModes{"Defer", "Sqpoll", "Plain"};
    return std::string(kModes[static_cast<std::size_t>(info.param.mode)]) +
           (info.param.here.find(':') == std::string::npos ? "V4" : "V6");
}

inline const std::array<Setup, 5> kSetups{{{SocketMode::Defer, test::loopback(1), test::loopback(2)},
                                           {SocketMode::Plain, test::loopback(1), test::loopback(2)},
                                           {SocketMode::Sqpoll, test::loopback(1), test::loopback(2)},
                                           {SocketMode::Defer, "::1", "::1"},
                                           {SocketMode::Plain, "::1", "::1"}}};

inline const std::uint16_t kPort = test::own_udp_port();

class UringPortPair : public testing::TestWithParam<Setup> {
protected:
    static std::unique_ptr<UringPort> open(const std::string& address, SocketMode mode, const std::string& pcap = {}) {
        UringPortConfig config;
        config.local = net::IpAddress::parse(address).value();
        config.udp_port = kPort;
        config.mode = mode;
        config.pcap = pcap;
        auto opened = UringPort::open(config);
        EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().text());
        return std::move(opened).value();
    }
    void SetUp() override {
        if (GetParam().here == "::1" && !test::has_loopback_v6()) {
            GTEST_SKIP() << "there is no ::1 here";
        }
        here = open(GetParam().here, GetParam().mode);
        there = GetParam().here == GetParam().there ? nullptr : open(GetParam().there, GetParam().mode);
        path = here->open_path({here->local_address(), peer().local_address(), 0, 0}, now);
    }
    // Returns the other port. With one address only, a port sends to itself.
    UringPort& peer() { return there != nullptr ? *there : *here; }

    static std::uint8_t content(std::size_t packet, std::size_t at) {
        return static_cast<std::uint8_t>(packet * 37 + at * 11 + 1);
    }
    // Sends datagrams of these lengths. Their tails, if wanted, lie in `tails` and follow 36 bytes of headers.
    void send(const std::vector<std::size_t>& lengths, std::vector<std::vector<std::uint8_t>>* tails = nullptr) {
        queue(lengths, tails);
        here->wait({}, -1);
    }
    void queue(const std::vector<std::size_t>& lengths, std::vector<std::vector<std::uint8_t>>* tails = nullptr) {
        std::vector<PacketRef> buffers(lengths.size());
        ASSERT_EQ(here->allocate_burst(buffers), lengths.size());
        std::vector<TxPacket> packets(lengths.size());
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            const std::size_t payload = lengths[i] - kIcrcBytes;
            const std::size_t in_buffer = tails != nullptr ? std::min<std::size_t>(payload, 36) : payload;
            for (std::size_t at = 0; at < in_buffer; ++at) {
                buffers[i].data[at] = content(i, at);
            }
            packets[i].packet = buffers[i];
            packets[i].packet.path = path;
            packets[i].packet.len = static_cast<std::uint16_t>(in_buffer + kIcrcBytes);
            if (tails != nullptr) {
                std::vector<std::uint8_t>& tail = tails->emplace_back(payload - in_buffer);
                for (std::size_t at = 0; at < tail.size(); ++at) {
                    tail[at] = content(i, in_buffer + at);
                }
                packets[i].tail = tail;
            }
        }
        for (std::size_t sent = 0; sent < packets.size();) {
            const std::size_t took = here->transmit_burst(std::span(packets).subspan(sent), now);
            ASSERT_GT(took, 0U);
            sent += took;
        }
    }
    std::vector<PacketRef> receive(std::size_t wanted) {
        std::vector<PacketRef> got;
        std::array<PacketRef, 64> burst;
        for (int tries = 0; tries < 2000 && got.size() < wanted; ++tries) {
            const std::size_t count = peer().receive_burst(burst, now);
            got.insert(got.end(), burst.begin(), burst.begin() + static_cast<std::ptrdiff_t>(count));
        }
        return got;
    }
    void expect_whole(std::vector<PacketRef>& got, const std::vector<std::size_t>& lengths) {
        ASSERT_EQ(got.size(), lengths.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_EQ(got[i].len, lengths[i]);
            EXPECT_TRUE(got[i].icrc_ok) << i;
            for (std::size_t at = 0; at + kIcrcBytes < lengths[i]; ++at) {
                ASSERT_EQ(got[i].data[at], content(i, at)) << i << " at " << at;
            }
        }
        peer().release_burst(got);
        EXPECT_EQ(peer().buffers_in_use(), 0U);
        EXPECT_EQ(here->buffers_in_use(), 0U);
    }

    std::unique_ptr<UringPort> here;
    std::unique_ptr<UringPort> there;
    Path* path = nullptr;
    Instant now{};
};

}  // namespace cairn::port
