#include "lib/roce/ud/mux.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::roce {

namespace {

// Numbers begin anew after the last one: numbers of queue pairs that ended are free again.
constexpr std::uint32_t kFirstQpn = 0x11;
constexpr std::uint32_t behind(std::uint32_t qpn) noexcept {
    constexpr std::uint32_t kLastQpn = 0xfffffe;  // the next is for groups (IBTA vol. 1, 10.5.1.1)
    return qpn < kLastQpn ? qpn + 1 : kFirstQpn;
}

}  // namespace

UdMux::UdMux(port::Port& port) : port_(port), buckets_(kBuckets, nullptr) {}

Result<UdEntry*> UdMux::create_qp(const UdConfig& config, UdReceiver& receiver) {
    UdConfig chosen = config;
    if (!wire::is_path_mtu(config.path_mtu_bytes)) {
        return Error{fmt::format("path MTU {} is not a legal one", config.path_mtu_bytes),
                     "use 256, 512, 1024, 2048 or 4096"};
    }
    const std::size_t needed = wire::kUdOverheadBytes + config.path_mtu_bytes;
    if (needed > port_.limits().max_udp_payload_bytes) {
        return Error{fmt::format("path MTU {} needs a UDP payload of {} bytes, the port carries {}",
                                 config.path_mtu_bytes, needed, port_.limits().max_udp_payload_bytes),
                     "choose a smaller --path-mtu or raise the link's MTU"};
    }
    if (qps_.size() >= kBuckets / 2) {
        return Error{"no queue pair left on this worker", "destroy unused ones or use more workers"};
    }
    if (chosen.qpn.value == 0) {
        while (find(Qpn{next_qpn_}) != nullptr) {
            next_qpn_ = behind(next_qpn_);
        }
        chosen.qpn = Qpn{next_qpn_};
        next_qpn_ = behind(next_qpn_);
    }
    if (find(chosen.qpn) != nullptr) {
        return Error{fmt::format("queue pair number {} is taken", chosen.qpn.value), "choose another"};
    }
    qps_.push_back(std::make_unique<UdEntry>(chosen, receiver));
    std::uint32_t index = chosen.qpn.value % kBuckets;
    while (buckets_[index] != nullptr) {
        index = (index + 1) % kBuckets;
    }
    buckets_[index] = qps_.back().get();
    return qps_.back().get();
}

UdEntry::UdEntry(const UdConfig& config, UdReceiver& receiver) noexcept : receiver_(receiver), config_(config) {
    set_keys(config.pkey, config.qkey);
}

void UdEntry::set_keys(Pkey pkey, Qkey qkey) noexcept {
    config_.pkey = pkey;
    config_.qkey = qkey;
    const wire::RawUd raw = make_header({nullptr, config_.qpn, config_.qkey});
    std::memcpy(expected_.data(), &raw, expected_.size());
}

Status UdMux::attach(UdEntry& qp, const net::IpAddress& group) {
    if (!group.is_group()) {
        return Error{fmt::format("{} is no multicast group", group.text()),
                     "give 224.0.0.0 to 239.255.255.255, or ff00::/8"};
    }
    bool joined = false;
    for (const Member& member : members_) {
        joined = joined || member.group == group;
        if (member.group == group && member.qp == &qp) {
            return Error{fmt::format("the queue pair is attached to {} already", group.text()), "attach it once"};
        }
    }
    if (!joined) {
        const Status status = port_.join(group);
        if (!status.ok()) {
            return status;
        }
    }
    members_.push_back({group, &qp});
    return Nothing{};
}

bool UdMux::detach(UdEntry& qp, const net::IpAddress& group) noexcept {
    const std::size_t left = std::erase_if(
        members_, [&](const Member& member) noexcept { return member.qp == &qp && member.group == group; });
    const bool empty = std::none_of(members_.begin(), members_.end(),
                                    [&group](const Member& member) noexcept { return member.group == group; });
    if (left != 0 && empty) {
        port_.leave(group);
    }
    return left != 0;
}

void UdMux::destroy_qp(UdEntry* qp) noexcept {
    recent_ = nullptr;
    CAIRN_ASSERT(std::none_of(members_.begin(), members_.end(),
                              [qp](const Member& member) noexcept { return member.qp == qp; }));
    std::erase_if(qps_, [qp](const std::unique_ptr<UdEntry>& owned) { return owned.get() == qp; });
    std::fill(buckets_.begin(), buckets_.end(), nullptr);
    for (const std::unique_ptr<UdEntry>& left : qps_) {
        std::uint32_t index = left->config().qpn.value % kBuckets;
        while (buckets_[index] != nullptr) {
            index = (index + 1) % kBuckets;
        }
        buckets_[index] = left.get();
    }
}

wire::RawUd UdEntry::make_header(const UdAddress& to) const noexcept {
    return header_to(to).raw(0);
}

}  // namespace cairn::roce
