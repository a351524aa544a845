// A hostile peer of an RPC system over connections: a program on an honest host. It connects with a valid greeting or
// another one, and writes by hand. It also accepts connections, and may never answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/world.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::sim {

class LinkedStranger {
public:
    static constexpr std::uint16_t kPort = 7473;  // port on which it listens

    // Makes the peer. The node's worker and the connections outlive it. `listens`: it is the host's only listener.
    // `bytes`: size of its memory, which its peers may write and read.
    LinkedStranger(World& world, Node& node, connections::Home& home, std::uint32_t path_mtu_bytes, std::size_t bytes);
    virtual ~LinkedStranger();
    LinkedStranger(const LinkedStranger&) = delete;
    LinkedStranger& operator=(const LinkedStranger&) = delete;

    // Makes a step. May connect to this port of this host.
    void act(std::size_t host, std::uint16_t port);
    // Handles the events of its connector.
    void look();
    // Gives up all its connections.
    void leave();

    [[nodiscard]] std::uint64_t connected() const noexcept { return connected_; }
    [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return memory_.span(); }

protected:
    static constexpr std::uint32_t kContactsMost = 3;
    enum class Manner : std::uint8_t {
        Asks,     // sends valid requests; it need not read the answers
        Mutates,  // sends valid requests with a wrong byte
        Babbles,  // sends random bytes
        Silent,
        Count,
    };
    struct Contact {
        std::unique_ptr<verbs::Qp> qp;
        verbs::ConnectionId id{};
        Manner manner = Manner::Silent;
        std::uint32_t number = 0;  // no other contact has it at the same time
        cm::PrivateBytes said{};   // by the peer
        bool asked = false;        // the hostile peer began the connection
        bool up = false;
        std::uint32_t place = 0;  // for the system's use, as the next
        std::uint32_t sequence = 0;
    };

    // Returns the greeting of a new contact. The bytes are read before the next call.
    [[nodiscard]] virtual std::span<const std::uint8_t> greeting(Contact& contact) = 0;
    virtual void on_up(Contact&) {}
    // Makes a step of a connected contact that is not silent.
    virtual void speak(Contact& contact) = 0;

    // For a contact that mutates: sometimes flips a bit. For one that sends random bytes: scrambles the end.
    void spoil(const Contact& contact, std::span<std::uint8_t> bytes);
    void scramble(std::span<std::uint8_t> bytes);
    void post(Contact& contact, const verbs::SendRequest& request);
    [[nodiscard]] const verbs::Mr& region() const noexcept { return *region_; }
    [[nodiscard]] Random& random() noexcept { return random_; }

private:
    [[nodiscard]] Contact* add_contact();
    [[nodiscard]] Contact* find(verbs::ConnectionId id);
    void connect(std::size_t host, std::uint16_t port);
    void on_requested(const cm::Requested& requested);
    void end(verbs::ConnectionId id);
    void remove(verbs::ConnectionId id);

    World& world_;
    Random& random_;
    Node& node_;
    std::uint32_t path_mtu_bytes_;
    verbs::Device device_;
    std::unique_ptr<verbs::Pd> pd_;
    AlignedMemory memory_;
    std::unique_ptr<verbs::Mr> region_;
    std::unique_ptr<verbs::Cq> queue_;
    std::vector<std::unique_ptr<Contact>> contacts_;
    std::unique_ptr<verbs::Connector> connector_;  // ends before the queue pairs
    std::uint64_t connected_ = 0;
    std::uint64_t writes_ = 0;
};

}  // namespace cairn::sim
