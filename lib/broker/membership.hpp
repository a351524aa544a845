// A program's membership among those that share an address, and the thread that keeps it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/nowhere.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/base/result.hpp"
#include "lib/broker/packets.hpp"
#include "lib/broker/voice.hpp"
#include "lib/port/socket_queues.hpp"

namespace cairn::broker {

struct MembershipConfig {
    Place place{};
    std::string program;               // to start if no broker is there; empty: none is started
    std::string pcap;                  // like SocketQueuesConfig::pcap
    Duration patience = seconds(5);    // the longest to wait for a broker
    Duration again_most = seconds(5);  // between two looks for a new broker after one died
};

class Membership;

// Either a membership, or the reason why there is no broker: then the process may open the address alone.
struct Joined {
    std::unique_ptr<Membership> membership{};
    std::string why_alone{};
};

// The thread forwards datagrams that came to the wrong program. If the broker dies, it starts a new one, brings it the
// sockets, and comes back to its slot. Meanwhile the program goes on. A child of fork() is no member: its copies of the
// descriptors are replaced by ones that do nothing.
class Membership {
public:
    // Joins the programs of the address. Errors: the address belongs to programs of another user, all slots are lent,
    // or no descriptor is left. A program of an earlier broker, or the broker itself, may also not answer.
    static Result<Joined> join(const MembershipConfig& config);
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;
    // Gives the slot back. The port on queues() has ended before.
    ~Membership();

    [[nodiscard]] Slot slot() const noexcept { return slot_; }
    // Returns the sockets for UringPort::open(), whose worker is the slot.
    [[nodiscard]] const std::shared_ptr<port::SocketQueues>& queues() const noexcept { return queues_; }
    // Returns the broker's client, for the program's connection manager.
    [[nodiscard]] Voice& voice() noexcept { return voice_; }

private:
    explicit Membership(const MembershipConfig& config) : config_(config) {}
    Status begin(OwnedFd connection, Slot slot, std::vector<OwnedFd> held);
    void run() noexcept;
    void sleep(int timeout_ms) noexcept;
    void hear() noexcept;
    void bring(const Stray& stray) noexcept;
    void lose_connection() noexcept;
    void speak() noexcept;
    void come_back() noexcept;

    friend struct ForkedChild;
    void forget_in_child(Nowhere& nowhere) noexcept;

    const MembershipConfig config_;
    Slot slot_{};
    std::vector<OwnedFd> held_;  // copies of all sockets that there were: see KernelGroup
    std::shared_ptr<port::SocketQueues> queues_;
    OwnedFd end_event_;
    OwnedFd connection_;  // the thread's; not open: the broker is gone
    Voice voice_;
    Duration again_{};  // before the next look for a broker
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

}  // namespace cairn::broker
