#include "lib/ibverbs/memory_rules.hpp"

#include <cerrno>
#include <limits>

#include "lib/ibverbs/translate.hpp"

namespace cairn::ibverbs {

namespace {

constexpr std::size_t kWord = 4;
constexpr std::uint32_t kMostAlignment = 21;  // as a power of two
constexpr std::uintptr_t kFirstPage = 4096;   // where it ends
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

[[nodiscard]] bool is_within(std::uint64_t offset, std::size_t bytes, std::size_t size) noexcept {
    return bytes <= size && offset <= size - bytes;
}

}  // namespace

RegistrationJudgement judge_registration(const Registration& wanted) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(wanted.address);
    const auto rights = to_rights(wanted.access);
    const bool on_demand = (wanted.access & IBV_ACCESS_ON_DEMAND) != 0;
    const bool is_all = address == 0 && wanted.bytes == kMost;
    const bool is_zero_based = (wanted.access & IBV_ACCESS_ZERO_BASED) != 0;
    RegistrationJudgement judged;
    judged.base = is_zero_based ? 0 : wanted.iova;
    if (!rights || (is_all ? !on_demand || judged.base != 0 : wanted.bytes > kMost - address)) {
        judged.reason = EINVAL;
        return judged;
    }
    judged.rights = *rights;
    judged.memory = {static_cast<std::uint8_t*>(wanted.address), wanted.bytes};
    if (is_all) {
        judged.base = kFirstPage;
        judged.memory = {reinterpret_cast<std::uint8_t*>(kFirstPage), wanted.bytes - kFirstPage};
    }
    judged.needs_pages = !on_demand && wanted.bytes != 0;
    judged.needs_to_write = rights->cover(roce::Right::LocalWrite);
    return judged;
}

bool is_change(SharedRegion::Kind kind, const Change& change) noexcept {
    const auto has = [&change](int flag) noexcept { return (change.which & flag) != 0; };
    if (kind != SharedRegion::Kind::Ordinary || (change.which & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) {
        return false;
    }
    if (has(IBV_REREG_MR_CHANGE_TRANSLATION) && (change.bytes == 0 || change.address == nullptr)) {
        return false;
    }
    if (has(IBV_REREG_MR_CHANGE_PD) && !change.has_domain) {
        return false;
    }
    return change.access == 0 || has(IBV_REREG_MR_CHANGE_ACCESS);
}

int judge_device_copy(std::uint64_t offset, std::size_t bytes, std::size_t size) noexcept {
    if (offset % kWord != 0 || bytes % kWord != 0) {
        return EINVAL;
    }
    return is_within(offset, bytes, size) ? 0 : EFAULT;
}

int judge_device_registration(std::uint64_t offset, std::size_t bytes, std::size_t size, unsigned access) noexcept {
    constexpr unsigned kAllowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;
    const bool suits = (access & ~kAllowed) == 0 && (access & IBV_ACCESS_ZERO_BASED) != 0;
    return suits && is_within(offset, bytes, size) ? 0 : EINVAL;
}

int judge_device_memory(const ibv_alloc_dm_attr& wanted, std::size_t in_use) noexcept {
    if (wanted.comp_mask != 0 || wanted.length == 0 || wanted.length > kMostDeviceMemory ||
        wanted.log_align_req > kMostAlignment) {
        return EINVAL;
    }
    return wanted.length <= kMostDeviceMemory - in_use ? 0 : ENOMEM;
}

int errno_of_advice(roce::MemoryRefusal refusal) noexcept {
    switch (refusal) {
        case roce::MemoryRefusal::UnknownKey:
            return ENOENT;
        case roce::MemoryRefusal::WrongPd:
        case roce::MemoryRefusal::NoRight:
            return EPERM;
        case roce::MemoryRefusal::Vanished:
        case roce::MemoryRefusal::OutOfRange:
            return EFAULT;
        case roce::MemoryRefusal::InUse:
            break;
    }
    return EINVAL;
}

}  // namespace cairn::ibverbs
