#include "lib/sim/datagram_log.hpp"

#include <algorithm>

#include "lib/port/path.hpp"
#include "lib/sim/network.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint32_t kFirstAddress = 0x0a000001;

net::IpAddress address_of(std::size_t host) {
    return net::IpAddress::from_v4(static_cast<std::uint32_t>(kFirstAddress + host));
}

}  // namespace

DatagramLog::DatagramLog(std::size_t hosts) : hosts_(hosts) {
    for (std::size_t from = 0; from < hosts; ++from) {
        for (std::size_t to = 0; to < hosts; ++to) {
            port::Path& path =
                paths_.emplace_back(port::PathKey{address_of(from), address_of(to), port::kFirstUdpSourcePort});
            path.resolve(Network::mac_of(from), Network::mac_of(to));
        }
    }
}

void DatagramLog::add(const Passage& passage, std::span<const std::uint8_t> datagram) {
    ++datagrams_;
    port::Path& path = paths_[passage.from * hosts_ + passage.to];
    frame_.assign(path.lower_bytes() + datagram.size(), 0);
    std::uint8_t* const bth = frame_.data() + path.lower_bytes();
    std::copy(datagram.begin(), datagram.end(), bth);
    path.seal(bth, static_cast<std::uint16_t>(datagram.size()));
    capture_.add(frame_, passage.sent);
    if (witness_) {
        witness_(passage, datagram);
    }
}

}  // namespace cairn::sim
