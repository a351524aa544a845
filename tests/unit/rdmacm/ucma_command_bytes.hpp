// Commands as the distribution's librdmacm writes them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/rdmacm/ucma_command.hpp"

namespace cairn::rdmacm::ucma {

template <class Raw>
[[nodiscard]] std::vector<std::uint8_t> written(std::uint32_t command, const Raw& raw, std::size_t room_bytes = 0,
                                                std::size_t bytes = sizeof(Raw)) {
    abi::rdma_ucm_cmd_hdr header{};
    header.cmd = command;
    header.in = static_cast<std::uint16_t>(bytes);
    header.out = static_cast<std::uint16_t>(room_bytes);
    std::vector<std::uint8_t> made(sizeof(header) + bytes);
    std::memcpy(made.data(), &header, sizeof(header));
    std::memcpy(made.data() + sizeof(header), &raw, bytes);
    return made;
}

[[nodiscard]] inline std::uint64_t address_of(void* object) noexcept {
    return reinterpret_cast<std::uintptr_t>(object);
}

}  // namespace cairn::rdmacm::ucma
