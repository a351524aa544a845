// Rules for registering, copying and advising memory: pure, with the errno values of rdma-core's drivers.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/ibverbs/open_file.hpp"
#include "lib/roce/qp/memory.hpp"

namespace cairn::ibverbs {

struct Registration {
    void* address = nullptr;
    std::size_t bytes = 0;
    std::uint64_t iova = 0;
    unsigned access = 0;  // ibv_access_flags
};

struct RegistrationJudgement {
    int reason = 0;  // errno value; 0: it may be registered
    roce::Rights rights{};
    std::span<std::uint8_t> memory{};
    std::uint64_t base = 0;       // by which requests name the first byte
    bool needs_pages = false;     // all of them are to be mapped
    bool needs_to_write = false;  // all of them are to be mapped and writable
};

// Judges a registration. Memory that wraps is EINVAL. Pages on demand are looked at when they are used. Address 0 with
// the greatest length registers all memory of the process, except the first page, which is never mapped.
[[nodiscard]] RegistrationJudgement judge_registration(const Registration& wanted) noexcept;

// A change that ibv_rereg_mr() is asked for. is_change() returns false if it is wrong by itself.
struct Change {
    int which = 0;  // ibv_rereg_mr_flags
    bool has_domain = false;
    void* address = nullptr;
    std::size_t bytes = 0;
    unsigned access = 0;
};
[[nodiscard]] bool is_change(SharedRegion::Kind kind, const Change& change) noexcept;

// Judge [offset, offset + bytes) in device memory of `size` bytes, and return an errno value. Copies are of words of 4
// bytes.
[[nodiscard]] int judge_device_copy(std::uint64_t offset, std::size_t bytes, std::size_t size) noexcept;
[[nodiscard]] int judge_device_registration(std::uint64_t offset, std::size_t bytes, std::size_t size,
                                            unsigned access) noexcept;
// Judges an allocation of device memory, of which `in_use` bytes are taken. Returns an errno value.
[[nodiscard]] int judge_device_memory(const ibv_alloc_dm_attr& wanted, std::size_t in_use) noexcept;

// Returns the errno value of `refusal`, the judgement of the region that a piece of advice is for.
[[nodiscard]] int errno_of_advice(roce::MemoryRefusal refusal) noexcept;

constexpr std::size_t kMostDeviceMemory = std::size_t{4} << 20U;  // of an opened device, in bytes

}  // namespace cairn::ibverbs
