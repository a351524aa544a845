// A stranger to an RPC system over connections: a program on an honest host that makes connections by itself, with a
// sound greeting or another one, and writes by hand. It takes connections as well, and may never answer.
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
    static constexpr std::uint16_t kPort = 7473;  // where it listens

    // The node's worker and the home outlive the stranger. `listens`: nobody else of the host does. `bytes`: of its
    // memory, which peers may write and read.
    LinkedStranger(World& world, Node& node, connections::Home& home, std::uint32_t path_mtu_bytes, std::size_t bytes);
    virtual ~LinkedStranger();
    LinkedStranger(const LinkedStranger&) = delete;
    LinkedStranger& operator=(const LinkedStranger&) = delete;

    // A step of it. May connect to this port of this host.
    void act(std::size_t host, std::uint16_t port);
    // Hears what its connector says.
    void look();
    // Gives up all that it has.
    void leave();

    [[nodiscard]] std::uint64_t connected() const noexcept { return connected_; }
    [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return memory_.span(); }

protected:
    static constexpr std::uint32_t kContactsMost = 3;
    enum class Manner : std::uint8_t {
        Asks,     // sound requests; it need not read the answers
        Mutates,  // sound requests, with a byte that is wrong
        Babbles,  // any bytes
        Silent,
        Count,
    };
    struct Contact {
        std::unique_ptr<verbs::Qp> qp;
        verbs::ConnectionId id{};
        Manner manner = Manner::Silent;
        std::uint32_t number = 0;  // no other contact has it at the same time
        cm::PrivateBytes said{};   // by the peer
        bool asked = false;        // the stranger began
        bool up = false;
        std::uint32_t place = 0;  // for the system's use, likewise the next
        std::uint32_t sequence = 0;
    };

    // What a new contact says to its peer. The bytes are read before the next call.
    [[nodiscard]] virtual std::span<const std::uint8_t> greeting(Contact& contact) = 0;
    virtual void on_up(Contact&) {}
    // A step of a contact that is up, and is not silent.
    virtual void speak(Contact& contact) = 0;

    // Flips a bit of a contact that mutates, at times; scrambles the end of one that babbles.
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
