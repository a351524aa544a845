// Conversations of any capture, as far as the replays can judge them: whole messages of one requester, each answered
// before the next one begins. The others are named with the reason.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "lib/port/datagram.hpp"
#include "tests/unit/rc/rc_capture_judge.hpp"

namespace cairn::roce::rc {

// The requests of one sender to one queue pair of another host, and the answers.
struct CapturedStream {
    net::IpAddress requester{};
    net::IpAddress responder{};
    Qpn qpn{};
    Psn next{};  // the PSN after the last request
    Conversation conversation;

    [[nodiscard]] Psn first() const { return conversation.packets.front().packet().bth().psn; }
    [[nodiscard]] bool asked(Psn psn) const { return psn.since(first()) >= 0 && psn.since(next) < 0; }
};

// Matches requests and answers of one file. Answers do not name their sender's queue pair, but their PSNs identify it.
class CaptureSorter {
public:
    void add(const port::Datagram& datagram, const wire::Packet& packet, Recorded recorded) {
        if (recorded.is_request) {
            add_request(datagram, packet, std::move(recorded));
            return;
        }
        CapturedStream* found = nullptr;
        for (CapturedStream& stream : streams_) {
            if (stream.requester == datagram.key.local && stream.responder == datagram.key.remote &&
                stream.asked(packet.bth().psn)) {
                count("answers that may be to several queue pairs", found != nullptr ? 1 : 0);
                found = &stream;
            }
        }
        if (found == nullptr) {
            count("answers to requests that are not there", 1);
            return;
        }
        found->conversation.packets.push_back(std::move(recorded));
    }
    void count(const std::string& why, std::size_t packets) { skipped_[why] += packets; }
    // Keeps the judged part of each stream.
    void finish(const std::string& file, std::vector<Conversation>& all) {
        std::size_t judged = 0;
        for (CapturedStream& stream : streams_) {
            CaptureJudge judge(stream.conversation);
            const std::size_t packets = judge.judge();
            count(judge.why(), stream.conversation.packets.size() - packets);
            stream.conversation.packets.resize(packets);
            stream.conversation.name = "of " + file;
            judged += packets;
            if (packets != 0) {
                all.push_back(std::move(stream.conversation));
            }
        }
        std::printf("%s: %zu packets of connections judged\n", file.c_str(), judged);
        for (const auto& [why, packets] : skipped_) {
            if (packets != 0) {
                std::printf("%s: %zu packets skipped: %s\n", file.c_str(), packets, why.c_str());
            }
        }
    }

private:
    void add_request(const port::Datagram& datagram, const wire::Packet& packet, Recorded recorded) {
        for (CapturedStream& stream : streams_) {
            if (stream.requester == datagram.key.remote && stream.responder == datagram.key.local &&
                stream.qpn == packet.bth().dest_qpn) {
                append(stream, packet, std::move(recorded));
                return;
            }
        }
        if (!packet.traits().starts_message()) {
            count("requests within a message whose beginning is not there", 1);
            return;
        }
        CapturedStream& made = streams_.emplace_back();
        made.requester = datagram.key.remote;
        made.responder = datagram.key.local;
        made.qpn = packet.bth().dest_qpn;
        append(made, packet, std::move(recorded));
    }
    static void append(CapturedStream& stream, const wire::Packet& packet, Recorded recorded) {
        const bool is_read = packet.traits().operation == wire::Operation::ReadRequest;
        // There is at least one packet for each 256 bytes; the PSNs of other queue pairs are far away.
        const std::uint32_t psns = is_read ? packet.get<wire::Reth>().dma_bytes / 256 + 1 : 1;
        stream.next = packet.bth().psn.plus(psns);
        stream.conversation.packets.push_back(std::move(recorded));
    }

    std::vector<CapturedStream> streams_;
    std::map<std::string, std::size_t> skipped_;
};

inline std::vector<Conversation> captured_conversations(wire::Service wanted) {
    std::vector<Conversation> all;
    for (const auto& file : test::trace_files()) {
        CaptureSorter sorter;
        for (const test::Frame& frame : test::read_pcap(file)) {
            const auto parsed = port::parse_frame(frame);
            const bool is_whole = parsed.ok() && port::has_right_icrc(parsed.value());
            const auto packet =
                wire::Packet::parse(is_whole ? parsed.value().udp_payload : std::span<const std::uint8_t>());
            if (!packet.ok()) {
                sorter.count("frames that are no whole packet", 1);
            } else if (packet.value().traits().service == wanted) {
                const auto bytes = parsed.value().udp_payload;
                Recorded recorded{{bytes.begin(), bytes.end()}};
                recorded.is_request = packet.value().traits().role == wire::Role::Request;
                sorter.add(parsed.value(), packet.value(), std::move(recorded));
            }
        }
        sorter.finish(file.filename().string(), all);
    }
    return all;
}

// Returns the conversations to replay: the golden traces, or the judged parts of the captures that replace them.
inline const std::vector<Conversation>& replayed(wire::Service service = wire::Service::Rc) {
    if (test::traces_are_golden()) {
        return conversations(service);
    }
    static const std::vector<Conversation> kReliable = captured_conversations(wire::Service::Rc);
    static const std::vector<Conversation> kUnreliable = captured_conversations(wire::Service::Uc);
    return service == wire::Service::Rc ? kReliable : kUnreliable;
}

}  // namespace cairn::roce::rc
