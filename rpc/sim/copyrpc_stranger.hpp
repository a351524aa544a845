// A stranger to copyrpc: a program on an honest host that makes connections by itself, with a sound greeting or another
// one, and writes by hand. It takes connections as well, and may never answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/world.hpp"
#include "lib/verbs/connector.hpp"
#include "rpc/copyrpc/format.hpp"
#include "rpc/copyrpc/hello.hpp"
#include "rpc/copyrpc/message.hpp"

namespace cairn::sim {

class CopyrpcStranger {
public:
    static constexpr std::uint16_t kPort = 7473;  // where it listens

    // The node's worker and the home outlive the stranger. `listens`: nobody else of the host does.
    CopyrpcStranger(World& world, Node& node, connections::Home& home, bool listens, std::uint32_t path_mtu_bytes);
    ~CopyrpcStranger();
    CopyrpcStranger(const CopyrpcStranger&) = delete;
    CopyrpcStranger& operator=(const CopyrpcStranger&) = delete;

    // A step of it. May connect to this port of this host.
    void act(std::size_t host, std::uint16_t port);
    // Hears what its connector says.
    void look();
    // Gives up all that it has.
    void leave();

    [[nodiscard]] std::uint64_t connected() const noexcept { return connected_; }
    [[nodiscard]] std::uint64_t batches() const noexcept { return batches_; }

private:
    static constexpr std::uint32_t kBytes = 65536;
    enum class Manner : std::uint8_t {
        Asks,     // sound batches of requests; it reads no answer
        Mutates,  // sound batches, with a byte that is wrong
        Babbles,  // any bytes, any immediate
        Silent,
        Count,
    };
    struct Contact {
        std::unique_ptr<verbs::Qp> qp;
        verbs::ConnectionId id{};
        Manner manner = Manner::Silent;
        std::optional<copyrpc::Hello> peer{};
        bool up = false;
        std::uint32_t place = 0;  // blocks written
        std::uint16_t sequence = 0;
    };

    [[nodiscard]] Contact* add_contact();
    [[nodiscard]] Contact* find(verbs::ConnectionId id);
    void connect(std::size_t host, std::uint16_t port);
    void on_requested(const cm::Requested& requested);
    void write(Contact& contact);
    [[nodiscard]] std::uint32_t compose(Contact& contact);
    void remove(verbs::ConnectionId id);

    World& world_;
    Random& random_;
    Node& node_;
    std::uint32_t path_mtu_bytes_;
    verbs::Device device_;
    std::unique_ptr<verbs::Pd> pd_;
    AlignedMemory memory_;  // its ring, and behind it what it writes
    std::unique_ptr<verbs::Mr> region_;
    std::unique_ptr<verbs::Cq> queue_;
    std::vector<std::unique_ptr<Contact>> contacts_;
    std::unique_ptr<verbs::Connector> connector_;  // ends before the queue pairs
    std::uint64_t connected_ = 0;
    std::uint64_t batches_ = 0;
};

}  // namespace cairn::sim
