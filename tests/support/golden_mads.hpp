// The management datagrams of golden traces, for tests.
#pragma once

#include <string>
#include <vector>

#include "lib/wire/mad.hpp"
#include "lib/wire/packet.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::test {

// Returns the management datagrams of the trace of this name, in order. The trace is over IPv4.
inline std::vector<wire::MadBytes> golden_mads(const std::string& trace) {
    constexpr std::size_t kLowerBytes = 42;  // Ethernet, IPv4, UDP
    std::vector<wire::MadBytes> mads;
    for (const std::filesystem::path& file : trace_files()) {
        if (file.stem() != trace) {
            continue;
        }
        for (const Frame& frame : read_pcap(file)) {
            const auto packet = wire::Packet::parse(std::span(frame).subspan(kLowerBytes));
            if (packet.ok() && packet.value().bth().dest_qpn == wire::kGeneralServicesQpn &&
                packet.value().payload().size() == wire::kMadBytes) {
                std::copy_n(packet.value().payload().begin(), wire::kMadBytes, mads.emplace_back().begin());
            }
        }
    }
    return mads;
}

}  // namespace cairn::test
