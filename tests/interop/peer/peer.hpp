// Peer: a device with a connector. The code that waits for an event drives it. A missing or wrong event ends the
// program.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "apps/common/ports.hpp"
#include "lib/verbs/connector.hpp"
#include "pmd_glue/eal.hpp"
#include "pmd_glue/heap_block.hpp"

namespace cairn::interop {

struct Options {
    app::PortOptions ports{};
    std::string ask;  // the server's address; empty: serve
    std::string test = "steps";
    std::uint16_t service_port = 0;
    bool unreliable = false;         // steps: over an unreliable connection
    std::vector<std::string> steps;  // KIND[:BYTES[:s]], as guest/verbs-peer.c has them
    std::uint32_t connections = 1;   // cmatose, udaddy
    std::uint32_t messages = 10;
    std::uint32_t message_bytes = 100;
    std::uint32_t linger_s = 0;  // goes on answering
};

// Ends the program with 1 and that word unless `so`.
void require(bool so, std::string_view what);

template <class T>
T take(Result<T> result) {
    require(result.ok(), result.ok() ? std::string() : result.error().text());
    return std::move(result).value();
}

constexpr verbs::Rights kRemoteRights =
    verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead | verbs::Right::RemoteAtomic;

class Peer {
public:
    // Makes a peer. The port outlives it.
    explicit Peer(port::Port& port);

    [[nodiscard]] Instant now() const noexcept { return clock_.now(); }
    [[nodiscard]] verbs::Device& device() noexcept { return device_; }
    [[nodiscard]] connections::Home& home() noexcept { return *home_; }
    [[nodiscard]] verbs::Connector& connector() noexcept { return *connector_; }
    [[nodiscard]] verbs::Pd& pd() noexcept { return *pd_; }

    void listen(std::uint16_t service_port, std::uint32_t backlog);
    // Prints "ready", for a program that waits for the word.
    static void tell_ready();
    void turn();
    // Takes turns until done().
    template <class Done>
    void await(std::string_view what, const Done& done) {
        constexpr Duration kPatience = seconds(60);
        const Instant end = now() + kPatience;
        while (!done()) {
            require(now() < end, what);
            turn();
        }
    }
    // Returns the next event, which must be of that kind.
    template <class Kind>
    Kind await_event(std::string_view what) {
        std::optional<cm::Event> event;
        await(what, [&] { return (event = connector_->poll_event()).has_value(); });
        const Kind* const kind = std::get_if<Kind>(&*event);
        require(kind != nullptr, what);
        return *kind;
    }
    verbs::Completion await_completion(verbs::Cq& queue, std::string_view what);
    // Opens a path to `remote` and waits until its neighbour is known, so that the first packet is not lost.
    std::unique_ptr<verbs::Ah> open_way(const net::IpAddress& remote);
    void linger(Duration time);

private:
    pmd::Clock clock_;
    std::unique_ptr<worker::Worker> worker_;
    verbs::Device device_;
    std::unique_ptr<verbs::Pd> pd_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Connector> connector_;
};

// Memory and completion queues for a queue pair.
class Queues {
public:
    Queues(Peer& peer, std::size_t bytes);

    [[nodiscard]] verbs::Mr& mr() noexcept { return *mr_; }
    [[nodiscard]] verbs::Cq& sends() noexcept { return *sends_; }
    [[nodiscard]] verbs::Cq& receives() noexcept { return *receives_; }

private:
    pmd::HeapBlock memory_;
    std::unique_ptr<verbs::Mr> mr_;
    std::unique_ptr<verbs::Cq> sends_;
    std::unique_ptr<verbs::Cq> receives_;
};

// A queue pair of a connection.
class End : public Queues {
public:
    End(Peer& peer, std::size_t bytes, verbs::Service service = verbs::Service::Rc);
    [[nodiscard]] verbs::Qp& qp() noexcept { return *qp_; }

private:
    std::unique_ptr<verbs::Qp> qp_;
};

// A queue pair of datagrams, with rdma_cm's Q_Key.
class DatagramEnd : public Queues {
public:
    DatagramEnd(Peer& peer, std::size_t bytes);
    [[nodiscard]] verbs::UdQp& qp() noexcept { return *qp_; }

private:
    std::unique_ptr<verbs::UdQp> qp_;
};

// Run the tests, as server or client: see their sources.
void run_steps(Peer& peer, const Options& options);
void run_cmatose(Peer& peer, const Options& options);
void run_udaddy(Peer& peer, const Options& options);

}  // namespace cairn::interop
