// An endpoint: the state that a kernel would keep of an rdma_cm_id. It knows no queue pair but its number.
#pragma once

#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>

#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "lib/cm/events.hpp"
#include "lib/ibverbs/uncancelled.hpp"
#include "lib/rdmacm/device.hpp"
#include "lib/rdmacm/ends.hpp"
#include "lib/rdmacm/event.hpp"
#include "lib/rdmacm/state.hpp"

namespace cairn::rdmacm {

// The options of rdma_set_option().
struct Options {
    std::uint8_t traffic_class = 0;
    bool shares_port = false;
    std::optional<bool> own_family{};  // see is_of_own_family()
    std::optional<std::uint8_t> ack_timeout{};
};

// The acknowledgement timeout, as a code: 2.1 s, and 17 s with all repetitions. Kernels have the same, as they take 1 s
// as the lifetime of packets on Ethernet. An adapter goes on acknowledging while its program is stopped, or has no CPU;
// here the program has to acknowledge.
constexpr std::uint8_t kThereAndBack = 19;

// A multicast group that an endpoint joined.
struct Group {
    Endpoint* endpoint = nullptr;
    End end{};
    bool sends_only = false;
    void* context = nullptr;  // the program's
    std::uint32_t given = 0;  // events that the program got; guarded by the EventLock, as the next
    std::uint32_t acknowledged = 0;
};

// The state of an id. A call holds `calls`, and the lock of the adapter if the endpoint is bound to a device. Turns of
// the worker, which have the adapter's lock, find the endpoint by the id of its connection or question.
struct Endpoint {
    Endpoint(rdma_port_space of_space, ibv_qp_type of_type, Channel& on) noexcept
        : space(of_space), type(of_type), channel(&on) {}
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    ~Endpoint() = default;

    [[nodiscard]] bool is_datagrams() const noexcept { return type == IBV_QPT_UD; }

    const rdma_port_space space;
    const ibv_qp_type type;
    std::mutex calls;
    State state = State::Idle;
    End local{};
    End remote{};
    Device* device = nullptr;  // nullptr: any
    PortClaim claimed{};       // port 0: none
    Options options{};
    std::optional<cm::ConnectionId> connection{};
    std::optional<cm::DatagramId> question{};      // ours, or that of a peer
    std::optional<cm::QpParameters> parameters{};  // as soon as the peer's are known
    Psn receive_psn{};                             // of the first packet that the peer sends
    std::uint32_t qpn = 0;                         // of the program's queue pair, once it is known
    std::list<Group> groups;

    // The EventLock guards these.
    Channel* channel;
    Id* id = nullptr;  // nullptr: the program has not got the request yet
    EventTally events{};
};

using ibverbs::NoCancellation;

// Holds the locks of an endpoint for a call. Threads are not cancelled meanwhile.
class Held {
public:
    explicit Held(Endpoint& endpoint);
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() = default;

    // Returns the result of `wait`, which waits for other threads or processes, and is called without the adapter's
    // lock. The endpoint has no connection.
    template <class Wait>
    [[nodiscard]] int without_adapter(Wait&& wait) {
        const bool had_lock = adapter_.owns_lock();
        if (had_lock) {
            adapter_.unlock();
        }
        const int result = wait();
        if (had_lock) {
            adapter_.lock();
        }
        return result;
    }

private:
    const NoCancellation whole_;
    const std::lock_guard<std::mutex> calls_;
    std::unique_lock<ibverbs::Lock> adapter_;
};

// The calls. Each returns an errno value.
[[nodiscard]] int bind(Endpoint& endpoint, const End& local);
// Resolves the address. The answer is an event.
[[nodiscard]] int resolve_address(Endpoint& endpoint, const std::optional<End>& local, const End& remote);
[[nodiscard]] int resolve_route(Endpoint& endpoint);
[[nodiscard]] int listen(Endpoint& endpoint, int backlog);
[[nodiscard]] int connect(Endpoint& endpoint, const rdma_conn_param& wanted);
[[nodiscard]] int accept(Endpoint& endpoint, const rdma_conn_param& wanted);
// Takes the peer's reply: the connection is established.
[[nodiscard]] int establish(Endpoint& endpoint);
[[nodiscard]] int reject(Endpoint& endpoint, std::span<const std::uint8_t> private_data, std::uint8_t reason);
[[nodiscard]] int disconnect(Endpoint& endpoint);
[[nodiscard]] int notify(Endpoint& endpoint, ibv_event_type event);
[[nodiscard]] int set_option(Endpoint& endpoint, int level, int name, std::span<const std::uint8_t> value);
// The purpose of an address. Serve claims the service for all programs of the address.
enum class Purpose : std::uint8_t { Serve, Ask };
// Sets the port and address of an endpoint that is not bound yet. Needs `calls`.
[[nodiscard]] int take_address(Endpoint& endpoint, const End& local, Purpose purpose);
// Writes the attributes that a queue pair needs on its way to `wanted.qp_state`.
[[nodiscard]] int init_attributes(Endpoint& endpoint, ibv_qp_attr& wanted, int& mask);
// Joins a group. The answer is an event.
[[nodiscard]] int join(Endpoint& endpoint, const End& group, bool sends_only, void* context);
// Returns the group that was joined by that address; nullptr if there is none.
[[nodiscard]] Group* find_group(Endpoint& endpoint, const End& group);
// Leaves the group, and waits until its events were acknowledged. A cancellation point.
void leave(Endpoint& endpoint, Group& group);
// Ends the connection, the listener and the groups as their states demand, and gives back the port. The endpoint gets
// no more events. Events that it did not get yet are dropped.
void end(Endpoint& endpoint) noexcept;

// Return the path from the device of an address, or from the endpoint's device with its options, to a host or group.
[[nodiscard]] ibv_ah_attr way_between(const net::IpAddress& local, const net::IpAddress& remote) noexcept;
[[nodiscard]] ibv_ah_attr way_to(const Endpoint& endpoint, const net::IpAddress& remote) noexcept;
// Returns the path to the peer. The endpoint has a device.
[[nodiscard]] ibv_sa_path_rec path_of(const Endpoint& endpoint) noexcept;
// Returns whether an unspecified `local` means the addresses of its family alone. An IPv4 one does unless the program
// sets the option.
[[nodiscard]] bool is_of_own_family(const Endpoint& endpoint, const End& local) noexcept;
// Return whether a peer was named, and whether there is a route to it.
[[nodiscard]] bool has_peer(const Endpoint& endpoint) noexcept;
[[nodiscard]] bool has_route(const Endpoint& endpoint) noexcept;

}  // namespace cairn::rdmacm
