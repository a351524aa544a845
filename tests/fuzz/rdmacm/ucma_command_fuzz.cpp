// Any bytes as a program's write to a kernel's rdma_cm. The result is an errno value of a kernel, or a command with a
// place and room for its answer. Nothing is read outside.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/rdmacm/ucma_command.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn::rdmacm;
using cairn::test::require;

void judge(const std::vector<std::uint8_t>& bytes) {
    const ucma::Parsed parsed = ucma::parse_command(bytes);
    if (const int* const refused = std::get_if<int>(&parsed)) {
        require(*refused == EINVAL || *refused == ENOSYS || *refused == ENOSPC || *refused == EFAULT);
        return;
    }
    std::visit(
        [](const auto& command) {
            if constexpr (requires { command.reply; }) {
                require(command.reply.address != 0 && command.reply.room_bytes >= sizeof(std::uint32_t));
            }
        },
        std::get<ucma::Command>(parsed));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cairn::test::Input input(data, size);
    judge({data, data + size});
    // Again with a valid header, which random bytes rarely have.
    ucma::abi::rdma_ucm_cmd_hdr header{};
    header.cmd = input.byte() % (ucma::abi::RDMA_USER_CM_CMD_JOIN_MCAST + 1U);
    header.out = static_cast<std::uint16_t>(input.byte() * 4U);
    const std::vector<std::uint8_t> body = input.bytes(1024);
    header.in = static_cast<std::uint16_t>(body.size());
    const auto* const raw = reinterpret_cast<const std::uint8_t*>(&header);
    std::vector<std::uint8_t> sound(raw, raw + sizeof(header));
    sound.insert(sound.end(), body.begin(), body.end());
    judge(sound);
    return 0;
}
