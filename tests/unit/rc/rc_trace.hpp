// Golden traces as conversations: the RC requests from one queue pair to another and their answers, as recorded.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/port/datagram.hpp"
#include "tests/support/pcap_reader.hpp"
#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {

struct Recorded {
    Datagram datagram;
    bool is_request = false;
    bool lost = false;  // on the bridge, after it was recorded

    [[nodiscard]] wire::Packet packet() const { return packet_of(datagram); }
};

// The requests in one direction and their answers, in the order of recording.
struct Conversation {
    std::string name;  // the file's name, without its ending
    std::vector<Recorded> packets;
};

// Returns the lost packet that the traces' README names: the first packet with the opcode.
inline std::optional<std::uint8_t> lost_opcode(const std::string& name) {
    const std::map<std::string, std::uint8_t> lost{
        {"rc_loss_ack", 0x11}, {"rc_loss_send_middle", 0x01}, {"rc_loss_write_middle", 0x07}};
    const auto found = lost.find(name);
    return found == lost.end() ? std::nullopt : std::optional(found->second);
}

inline void add_packet(std::vector<Conversation>& conversations, const std::string& name, Recorded recorded,
                       const std::string& from) {
    // Both guests number their queue pairs alike in every trace, so requester and responder have the same QPN.
    static std::map<std::string, std::size_t> index;
    const wire::Packet packet = recorded.packet();
    const std::string peers = std::string(wire::name_of(packet.traits().service)) + name + '/' +
                              std::to_string(packet.bth().dest_qpn.value) + '/' +
                              (recorded.is_request ? from
                               : from == "client"  ? "server"
                                                   : "client");
    const auto [found, added] = index.emplace(peers, conversations.size());
    if (added) {
        conversations.push_back({name, {}});
    }
    conversations[found->second].packets.push_back(std::move(recorded));
}

// Returns all conversations of all traces with one service.
inline const std::vector<Conversation>& conversations(wire::Service service = wire::Service::Rc) {
    const auto read = [](wire::Service wanted) {
        std::vector<Conversation> all;
        for (const auto& file : test::trace_files()) {
            const std::string name = file.stem().string();
            std::optional<std::uint8_t> lost = lost_opcode(name);
            std::vector<test::Frame> frames = test::read_pcap(file);
            std::optional<net::IpAddress> client;
            for (const test::Frame& frame : frames) {
                const auto parsed = port::parse_frame(frame);
                if (!parsed.ok()) {
                    continue;
                }
                const auto bytes = parsed.value().udp_payload;
                Recorded recorded{{bytes.begin(), bytes.end()}};
                const wire::Packet packet = recorded.packet();
                if (packet.traits().service != wanted) {
                    continue;
                }
                client = client.value_or(parsed.value().key.remote);
                recorded.is_request = packet.traits().role == wire::Role::Request;
                recorded.lost = lost == packet.bth().opcode;
                lost = recorded.lost ? std::nullopt : lost;
                add_packet(all, name, std::move(recorded), parsed.value().key.remote == *client ? "client" : "server");
            }
        }
        return all;
    };
    static const std::vector<Conversation> kReliable = read(wire::Service::Rc);
    static const std::vector<Conversation> kUnreliable = read(wire::Service::Uc);
    EXPECT_GT(kReliable.size(), 50U);
    EXPECT_GE(kUnreliable.size(), 9U);
    return service == wire::Service::Rc ? kReliable : kUnreliable;
}

inline QpCapacity capacity_of(const Conversation& conversation) {
    QpCapacity capacity;
    capacity.service = conversation.packets.front().packet().traits().service;
    return capacity;
}

// Returns the path MTU: the payload of a First or Middle, or any value if there is none.
inline std::uint32_t path_mtu_of(const Conversation& conversation) {
    for (const Recorded& recorded : conversation.packets) {
        const wire::Packet packet = recorded.packet();
        const auto place = packet.traits().place;
        if (place == wire::Place::First || place == wire::Place::Middle) {
            return static_cast<std::uint32_t>(packet.payload().size());
        }
    }
    return 4096;
}

inline bool starts_with(const std::string& text, const std::string& prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}

inline QpAttributes recorded_attributes(const Conversation& conversation) {
    QpAttributes values = RcHost::usual_attributes();
    const wire::Bth bth = conversation.packets.front().packet().bth();
    values.path_mtu_bytes = path_mtu_of(conversation);
    values.dest_qpn = bth.dest_qpn;
    values.receive_psn = bth.psn;
    values.send_psn = bth.psn;
    values.min_rnr_timer = wire::RnrTimer{26};
    values.ack_timeout = 17;
    values.migrated = bth.migration;  // rxe: 0
    values.access = starts_with(conversation.name, "rc_nak_noaccess") ? Rights{} : kAllRemote;
    return values;
}

}  // namespace cairn::roce::rc
