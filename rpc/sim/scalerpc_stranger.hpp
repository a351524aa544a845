// A hostile peer of ScaleRPC that writes entries, requests and answers by hand, in its turn or not.
#pragma once

#include <array>

#include "rpc/scalerpc/entry.hpp"
#include "rpc/sim/linked_stranger.hpp"

namespace cairn::sim {

class ScalerpcStranger final : public LinkedStranger {
public:
    ScalerpcStranger(World& world, Node& node, connections::Home& home, std::uint32_t path_mtu_bytes,
                     const scalerpc::BlockShape& shape)
        : LinkedStranger(world, node, home, path_mtu_bytes, std::size_t{part_bytes(shape)} * kContactsMost),
          shape_(shape) {}

private:
    // A contact's knowledge of its server.
    struct Part {
        scalerpc::News grant{};  // the slice's
        std::uint32_t next = 0;  // the first request that the server has not taken, by its own word
        std::uint32_t acknowledged = 0;
        bool overstays = false;  // it never confirms that it has left a slice, and goes on writing
    };
    // Returns the size of a contact's memory: its staged requests, its control words and answers, and its outgoing
    // bytes.
    [[nodiscard]] static constexpr std::uint32_t part_bytes(const scalerpc::BlockShape& shape) {
        return 2 * shape.session_bytes() + scalerpc::kControlBytes + shape.bytes;
    }
    [[nodiscard]] std::span<std::uint8_t> memory_of(const Contact& contact) const {
        return memory().subspan(std::size_t{contact.number} * part_bytes(shape_), part_bytes(shape_));
    }
    [[nodiscard]] std::span<std::uint8_t> answers_of(const Contact& contact) const {
        return memory_of(contact).subspan(shape_.session_bytes(), shape_.session_bytes() + scalerpc::kControlBytes);
    }
    [[nodiscard]] scalerpc::Grant grant_of(std::span<const std::uint8_t> memory) const {
        return {region().address() + static_cast<std::size_t>(memory.data() - this->memory().data()), region().rkey()};
    }

    std::span<const std::uint8_t> greeting(Contact& contact) override;
    void speak(Contact& contact) override;
    void speak_as_client(Contact& contact);
    void speak_as_server(Contact& contact);
    void look_at_news(const Contact& contact);
    void on_news(Part& part, const scalerpc::News& news) const;
    void write_request(Contact& contact);
    void write_entry(Contact& contact);
    void name_more(std::span<std::uint8_t> block);
    [[nodiscard]] scalerpc::News any_news();
    [[nodiscard]] scalerpc::Request any_request(std::uint32_t sequence);
    void write(Contact& contact, std::span<const std::uint8_t> bytes, std::uint64_t address, Rkey rkey);

    const scalerpc::BlockShape shape_;
    std::array<Part, kContactsMost> parts_{};  // by the contact's number
    std::array<std::uint8_t, 24> payload_{};   // for any_request()
    scalerpc::RawHello hello_{};               // the value that greeting() returns
};

}  // namespace cairn::sim
