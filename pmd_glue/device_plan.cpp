#include "pmd_glue/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "lib/port/path.hpp"
#include "pmd_glue/eal_arguments.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint32_t kEthernetHeader = port::Path::kEthernetBytes;
constexpr std::uint32_t kDefaultRoom = 2048;
constexpr std::uint32_t kMemifSlotBytes = 2048;  // net_memif's default bsize
constexpr std::uint32_t kAfPacketFrame = 2048;   // net_af_packet's default framesz
constexpr std::uint32_t kXdpFrameBytes = 3498;   // a page without XDP's headroom and the skb's tail
constexpr std::uint32_t kRoomAlignment = 64;

enum class QueueUse : std::uint8_t {
    Rss,        // one for each worker, if it has RSS: without it a second queue would receive nothing
    One,        // further queues need the peer's consent
    PerWorker,  // one for each worker, filled by other means than RSS
    All,        // it spreads what it receives over all its queues, polled or not
};

// The properties of a driver that DPDK's common interface does not have.
struct Quirk {
    std::string_view driver;
    QueueUse queues;
    bool no_mtu;             // a frame may be as large as a buffer
    bool fence_disconnects;  // see poll_fence.hpp
    bool isolate;            // it shares the NIC with the kernel
    // The device argument that determines the least data room, and by how much the room exceeds it.
    std::string_view room_argument;
    std::uint32_t room_default;
    std::uint32_t room_beyond;
    std::uint32_t lost_bytes;         // of a buffer's room, before received data
    std::uint32_t frame_limit_bytes;  // 0: none but the MTU
    bool fills_rings;                 // with buffers, before anything has come, although it is software
    SentMemory memory;
};

// The quirks of drivers. A buffer of memif is larger than a slot. Otherwise, from DPDK 23.03 on, each segment of a
// frame takes a slot, and a stale mark joins it to the next frame. A buffer of af_packet has room for a whole frame,
// which is copied unchecked. One of af_xdp begins with XDP_PACKET_HEADROOM.
constexpr std::array<Quirk, 5> kQuirks{{
    {"net_memif", QueueUse::One, true, true, false, "bsize", kMemifSlotBytes, 64, 0, 0, false, SentMemory::Any},
    {"net_af_packet", QueueUse::All, false, false, false, "framesz", kAfPacketFrame, 0, 0, 0, false, SentMemory::Any},
    {"net_af_xdp", QueueUse::Rss, false, false, false, "", 0, 0, 256, kXdpFrameBytes, true, SentMemory::Eal},
    {"net_ring", QueueUse::PerWorker, true, false, false, "", 0, 0, 0, 0, false, SentMemory::Attached},
    {"mlx5_pci", QueueUse::Rss, false, false, true, "", 0, 0, 0, 0, false, SentMemory::Mapped},
}};
constexpr Quirk kOrdinaryNic{"", QueueUse::Rss, false, false, false, "", 0, 0, 0, 0, false, SentMemory::Mapped};
constexpr Quirk kOrdinarySoftware{"", QueueUse::Rss, false, false, false, "", 0, 0, 0, 0, false, SentMemory::Eal};

const Quirk& quirk_of(const DeviceFacts& facts) noexcept {
    const auto* found = std::find_if(kQuirks.begin(), kQuirks.end(),
                                     [&facts](const Quirk& quirk) { return quirk.driver == facts.driver; });
    if (found != kQuirks.end()) {
        return *found;
    }
    return facts.in_software ? kOrdinarySoftware : kOrdinaryNic;
}

std::uint32_t rounded_up(std::uint32_t bytes) noexcept {
    return (bytes + kRoomAlignment - 1) / kRoomAlignment * kRoomAlignment;
}

// The largest frame that buffers and link have to carry, as error texts name it.
struct LargestFrame {
    std::uint32_t bytes;
    std::string text;
    std::string remedy;
};

LargestFrame largest_frame(const DeviceWish& wish) {
    const std::uint32_t of_path_mtu = kEthernetHeader + ip_bytes_for(wish.path_mtu_bytes);
    if (wish.frame_bytes > of_path_mtu) {
        return {wish.frame_bytes, fmt::format("frames of {} bytes", wish.frame_bytes),
                fmt::format("lower {}", wish.frame_argument)};
    }
    return {of_path_mtu, fmt::format("path MTU {}, whose frames have {} bytes", wish.path_mtu_bytes, of_path_mtu),
            "choose a smaller --path-mtu"};
}

constexpr std::uint16_t in_16_bits(std::uint32_t bytes) noexcept {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(bytes, 0xff00U));
}

// Chooses the room if an argument of the device determines the size of frames and buffers.
Status choose_dictated_room(const Quirk& quirk, const DeviceFacts& facts, const DeviceWish& wish, DevicePlan& plan) {
    const LargestFrame frame = largest_frame(wish);
    const std::string argument(quirk.room_argument);
    const std::uint32_t dictated = devarg_number(facts.devargs, argument, quirk.room_default);
    const std::uint32_t least = dictated + quirk.room_beyond;
    const std::uint32_t otherwise = quirk.no_mtu ? least : std::max({kDefaultRoom, rounded_up(frame.bytes), least});
    const std::uint32_t room = wish.data_room_bytes != 0 ? wish.data_room_bytes : otherwise;
    if (room < least) {
        return Error{
            fmt::format("{}: buffers of {} bytes are too small beside its {}={}", facts.name, room, argument, dictated),
            fmt::format("raise --data-room to {} or lower {}", least, argument)};
    }
    if (frame.bytes > dictated) {
        return Error{
            fmt::format("{}: {}={} is too small for {}", facts.name, argument, dictated, frame.text),
            fmt::format("give {}={} or more, at both ends, or {}", argument, rounded_up(frame.bytes), frame.remedy)};
    }
    plan.data_room_bytes = in_16_bits(room);
    plan.frame_bytes = quirk.no_mtu ? in_16_bits(dictated) : plan.data_room_bytes;
    return Nothing{};
}

// Chooses the room: a buffer holds a whole frame of the largest size.
Status choose_room(const Quirk& quirk, const DeviceFacts& facts, const DeviceWish& wish, DevicePlan& plan) {
    if (!quirk.room_argument.empty()) {
        return choose_dictated_room(quirk, facts, wish, plan);
    }
    const LargestFrame frame = largest_frame(wish);
    const std::uint32_t least = frame.bytes + quirk.lost_bytes;
    const std::uint32_t room =
        wish.data_room_bytes != 0 ? wish.data_room_bytes : std::max(kDefaultRoom, rounded_up(least));
    if (room < least) {
        return Error{fmt::format("{}: buffers of {} bytes hold frames of {} at most, too few for {}", facts.name, room,
                                 room - std::min(room, quirk.lost_bytes), frame.text),
                     fmt::format("raise --data-room to {}, or {}", rounded_up(least), frame.remedy)};
    }
    plan.data_room_bytes = in_16_bits(room);
    plan.frame_bytes = in_16_bits(room - quirk.lost_bytes);
    return Nothing{};
}

Status choose_mtu(const Quirk& quirk, const DeviceFacts& facts, const DeviceWish& wish, DevicePlan& plan) {
    const LargestFrame frame = largest_frame(wish);
    const auto needed = static_cast<std::uint16_t>(frame.bytes - kEthernetHeader);
    if (quirk.frame_limit_bytes != 0 && frame.bytes > quirk.frame_limit_bytes) {
        return Error{fmt::format("{}: {} bytes are the most for a frame, too few for {}", facts.name,
                                 quirk.frame_limit_bytes, frame.text),
                     fmt::format("{}, 2048 for instance", frame.remedy)};
    }
    plan.link_mtu_bytes =
        quirk.no_mtu ? static_cast<std::uint16_t>(plan.frame_bytes - kEthernetHeader) : facts.mtu_bytes;
    if (plan.link_mtu_bytes >= needed) {
        return Nothing{};
    }
    if (!facts.kernel_interface && facts.max_mtu_bytes >= needed) {
        plan.set_mtu = true;
        plan.link_mtu_bytes = needed;
        return Nothing{};
    }
    return Error{fmt::format("{}: MTU {} is too small for {}", facts.name, plan.link_mtu_bytes, frame.text),
                 facts.kernel_interface ? fmt::format("ip link set its interface mtu {}, or {}", needed, frame.remedy)
                                        : frame.remedy};
}

Status choose_queues(const Quirk& quirk, const DeviceFacts& facts, const DeviceWish& wish, DevicePlan& plan) {
    const std::uint16_t offered = std::max<std::uint16_t>(facts.max_queues, 1);
    const std::uint16_t one_each = std::min(wish.workers, offered);
    switch (quirk.queues) {
        case QueueUse::Rss:
            plan.rss = facts.offers_rss && offered > 1 && wish.workers > 1;
            plan.queues = plan.rss ? one_each : std::uint16_t{1};
            break;
        case QueueUse::One:
            plan.queues = 1;
            break;
        case QueueUse::PerWorker:
            plan.queues = one_each;
            break;
        case QueueUse::All:
            if (offered > wish.workers) {
                return Error{fmt::format("{}: spreads packets over {} queues, but there are {} workers", facts.name,
                                         offered, wish.workers),
                             fmt::format("give qpairs={} or more lcores", wish.workers)};
            }
            plan.queues = offered;
            break;
    }
    return Nothing{};
}

// Returns whether the device is a net_memif client that shares EAL's memory with its peer instead of copying into
// slots.
bool shares_its_memory(const DeviceFacts& facts) {
    const std::optional<std::string> shares = devarg_value(facts.devargs, "zero-copy");
    return facts.driver == "net_memif" && shares && shares->find("yes") != std::string::npos;
}

}  // namespace

std::uint32_t devarg_number(const std::string& devargs, const std::string& key, std::uint32_t otherwise) {
    std::string_view rest = devargs;
    while (!rest.empty()) {
        const std::string_view pair = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
        if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=') {
            std::uint32_t value = 0;
            const std::string_view digits = pair.substr(key.size() + 1);
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
            return error == std::errc() && end == digits.data() + digits.size() ? value : otherwise;
        }
    }
    return otherwise;
}

SentMemory memory_of(const DeviceFacts& facts) {
    // The peer finds packets by their place in EAL's memory.
    return shares_its_memory(facts) ? SentMemory::Eal : quirk_of(facts).memory;
}

Result<DevicePlan> plan_device(const DeviceFacts& facts, const DeviceWish& wish) {
    const Quirk& quirk = quirk_of(facts);
    if (facts.roce_in_hardware) {
        return Error{fmt::format("{}: the NIC takes RoCE packets (UDP 4791) itself", facts.name),
                     fmt::format("devlink dev param set pci/{} name enable_roce value false cmode driverinit && "
                                 "devlink dev reload pci/{}",
                                 facts.name, facts.name)};
    }
    DevicePlan plan;
    const Status room = choose_room(quirk, facts, wish, plan);
    if (!room.ok()) {
        return room.error();
    }
    const Status mtu = choose_mtu(quirk, facts, wish, plan);
    if (!mtu.ok()) {
        return mtu.error();
    }
    const Status queues = choose_queues(quirk, facts, wish, plan);
    if (!queues.ok()) {
        return queues.error();
    }
    plan.ipv4_checksum_offload = facts.offers_ipv4_checksum;
    plan.segments = facts.offers_segments;
    plan.memory = memory_of(facts);
    if (shares_its_memory(facts)) {
        // The driver looks for room once per four frames, as if each had one segment, and overwrites its ring's other
        // end. Up to four frames it takes one by one (DPDK 22.11 to 25.11).
        plan.frames_at_once = 4;
    }
    plan.isolate = quirk.isolate;
    plan.fence_disconnects = quirk.fence_disconnects;
    plan.asks_once = facts.driver == "net_memif" && devarg_value(facts.devargs, "role") != "server";
    plan.fills_rings = quirk.fills_rings || !facts.in_software;
    return plan;
}

Result<std::uint16_t> workers_in_common(std::span<const DeviceFacts> devices, const DeviceWish& wish) {
    std::uint16_t workers = wish.workers;
    for (const DeviceFacts& facts : devices) {
        const Result<DevicePlan> plan = plan_device(facts, wish);
        if (!plan.ok()) {
            return plan.error();
        }
        workers = std::min(workers, plan.value().queues);
    }
    return workers;
}

std::uint16_t largest_path_mtu(const DeviceFacts& facts, DeviceWish wish) {
    for (wish.path_mtu_bytes = 4096; wish.path_mtu_bytes >= 256; wish.path_mtu_bytes /= 2) {
        const Result<DevicePlan> plan = plan_device(facts, wish);
        if (plan.ok() && !plan.value().set_mtu) {
            return wish.path_mtu_bytes;
        }
    }
    return 1024;
}

}  // namespace cairn::pmd
