// A hostile peer of copyrpc that writes batches by hand.
#pragma once

#include "rpc/copyrpc/format.hpp"
#include "rpc/copyrpc/hello.hpp"
#include "rpc/copyrpc/message.hpp"
#include "rpc/sim/linked_stranger.hpp"

namespace cairn::sim {

class CopyrpcStranger final : public LinkedStranger {
public:
    // Makes the peer. It knows which flow the others use.
    CopyrpcStranger(World& world, Node& node, connections::Home& home, std::uint32_t path_mtu_bytes, copyrpc::Flow flow)
        : LinkedStranger(world, node, home, path_mtu_bytes, std::size_t{kBytes} * 2), flow_(flow) {}

private:
    static constexpr std::uint32_t kBytes = 65536;  // size of its ring; its outgoing bytes lie after it

    std::span<const std::uint8_t> greeting(Contact& contact) override;
    void on_up(Contact& contact) override;
    void speak(Contact& contact) override;
    [[nodiscard]] std::uint32_t compose(Contact& contact);

    const copyrpc::Flow flow_;
    copyrpc::RawHello hello_{};  // the value that greeting() returns
};

}  // namespace cairn::sim
