// The agent of a host address. It finds the worker that a message to queue pair 1 is for, and takes the message there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lib/base/mailbox.hpp"
#include "lib/base/secret.hpp"
#include "lib/cm/name_share.hpp"
#include "lib/connections/registry.hpp"
#include "lib/port/path.hpp"
#include "lib/telemetry/counters.hpp"
#include "lib/wire/mad.hpp"
#include "lib/worker/mail.hpp"

namespace cairn::connections {

class Home;

// X(enumerator, counter name, what non-zero means)
#define CAIRN_AGENT_COUNTERS(X)                                                                          \
    X(HandedOver, "cm_handed_over", "messages that went from the worker of queue pair 1 to another one") \
    X(MailFull, "cm_mail_full", "messages lost since too many were on their way to other workers")       \
    X(NoHome, "cm_no_home", "messages that name a worker without connections: of an earlier life, or forged")

CAIRN_DECLARE_COUNTERS(AgentCounter, CAIRN_AGENT_COUNTERS);

// A message to queue pair 1 as it came, and the way back to its sender.
struct ArrivedMad {
    port::WayBack by{};
    std::span<const std::uint8_t> bytes;
};

// A process has one agent per address, which the connections of all its workers share. The owner of queue pair 1 calls
// on_mad(). That owner is worker 0, or a broker that owns the queue pair for several processes.
class Agent : public std::enable_shared_from_this<Agent> {
public:
    static constexpr std::size_t kLetters = 1024;  // messages under way to other workers

    // Makes an agent. `key` is a secret; a simulated world gives its own.
    [[nodiscard]] static std::shared_ptr<Agent> create(const SipKey& key = draw_secret()) {
        return std::shared_ptr<Agent>(new Agent(key));
    }
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;
    ~Agent();

    // Leads a message to its worker. Called on the thread of the worker `from`, which need not have connections here.
    // Copies a message for another worker into a letter and mails it. At most kLetters letters are under way, and each
    // worker has an equal share of them. So peers cannot use up memory.
    void on_mad(worker::Worker& from, const ArrivedMad& mad, Instant now);

    [[nodiscard]] Registry& services() noexcept { return services_; }
    [[nodiscard]] const telemetry::CounterSet<AgentCounter>& counters() const noexcept { return counters_; }

    // Adds a worker's connections. Errors: the worker was added already; another worker has other owner bits.
    Status add(Home& home, worker::Worker& worker);
    void remove(const worker::Worker& worker) noexcept;

private:
    class Letter;
    struct Place {
        Home* home = nullptr;  // only its worker's thread uses it; others only compare it with nullptr
        worker::Address address;
        std::size_t letters = 0;  // under way to this worker
    };

    explicit Agent(const SipKey& key);
    void deliver(worker::Worker& from, WorkerNumber to, const ArrivedMad& mad, Instant now);
    [[nodiscard]] WorkerNumber owner_of(std::uint32_t name) const noexcept;
    [[nodiscard]] Home* home_of(const worker::Worker& worker) const noexcept;
    void open(worker::Worker& worker, const Letter& letter, Instant now);
    void take_back(Letter& letter) noexcept;
    // Returns a free letter. The caller holds the lock.
    [[nodiscard]] Letter* take_letter(WorkerNumber to) noexcept;

    Registry services_;
    mutable std::mutex lock_;    // guards the members below
    std::vector<Place> places_;  // by worker
    cm::NameShare names_{};
    std::vector<std::unique_ptr<Letter>> letters_;
    std::vector<Letter*> free_;
    telemetry::CounterSet<AgentCounter> counters_;  // counted on all workers' threads
};

}  // namespace cairn::connections
