// A worker of a node: a queue of a port, with services, sessions and message memory.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/worker_program.hpp"
#include "lib/connections/home.hpp"
#include "pmd_glue/heap_block.hpp"
#include "rpc/common/method.hpp"
#include "rpc/erpc/directory.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::node {

class SessionAwaiter;

// These two convert a text to a message and back.
[[nodiscard]] inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A request type of a service, and its handler.
struct Serving {
    std::uint8_t type;
    erpc::Handler handler;
    void* context = nullptr;
    std::uint32_t response_bytes_max = 0;  // see RequestTypes::set_handler()
};

// The state that the workers of a node share. All threads read and write it.
struct Shared {
    std::string program;
    std::shared_ptr<connections::Agent> agent = connections::Agent::create();
    std::atomic<bool> stopping{false};
    std::atomic<int> exit_status{0};
};

struct NodeWorkerConfig {
    std::uint16_t number = 0;
    std::uint16_t workers = 1;
    std::uint16_t path_mtu_bytes = 1024;
};

// A worker with its services and sessions. The set-up runs on the main thread. Afterwards only the worker's own thread
// uses the object.
class NodeWorker final : public app::WorkerProgram {
public:
    static constexpr std::uint16_t kServicesMost = 64;

    NodeWorker(const NodeWorkerConfig& config, std::unique_ptr<port::Port> port, pmd::HeapBlock memory, Shared& shared);
    ~NodeWorker() override;
    // Opens the worker. Called by the node before the set-up.
    Status open(Instant now);

    [[nodiscard]] std::uint16_t number() const noexcept { return config_.number; }
    // Returns the time of this turn. It never goes back.
    [[nodiscard]] const Instant& now() const noexcept { return now_; }

    // Opens a service, which gets an endpoint of its own. Its handlers run on this worker. Called in the set-up only;
    // clients find the service after the set-up of all workers. A worker opens the same services in the same order as
    // the worker before it, or only the first ones. The sessions of clients are spread over the workers that opened the
    // service. Errors: the number is taken or not in [1, 65535]; the worker has kServicesMost services; those of
    // Endpoint::create().
    Result<erpc::Endpoint*> open_service(std::uint32_t service);
    // Opens a service and sets its handlers. Errors: those of open_service() and of set_handler().
    Status serve(std::uint32_t service, std::initializer_list<Serving> handlers);

    // Finds the service on the host and opens a session to it. The callback runs on this worker after connect() has
    // returned. An error has the remedy. If the worker ends first, the callback gets an error too.
    using Connected = void (*)(void* context, NodeWorker& worker, const Result<SessionId>& session);
    void connect(const std::string& host, std::uint32_t service, Connected callback, void* context);
    // Connects by co_await, which yields the Result<SessionId>.
    [[nodiscard]] SessionAwaiter connect(std::string host, std::uint32_t service);

    // Returns the endpoint of the sessions that connect() opens.
    [[nodiscard]] erpc::Endpoint& caller() noexcept { return *caller_; }
    rpc::Posted post(SessionId session, const rpc::Call& call) noexcept { return caller_->post(session, call, now_); }
    // Posts a call. co_await yields the CallResult. `request` must not change until then.
    [[nodiscard]] rpc::CallAwaiter<erpc::Endpoint> call(SessionId session, std::uint8_t type,
                                                        std::span<const std::uint8_t> request,
                                                        Instant deadline = Instant::never()) noexcept;
    // Posts a typed call. co_await yields the typed result.
    template <class In, class Out>
    [[nodiscard]] auto invoke(SessionId session, const rpc::Method<In, Out>& method, const In& request) {
        return rpc::invoke(*caller_, session, method, request, now_);
    }

    // Ends the program. All workers end their sessions, and the node's run() returns the status. If several calls give
    // a status other than 0, the first of these counts.
    void stop(int exit_status = 0) noexcept;
    // Prints the error with the program's name, and ends the program with exit status 1. Does nothing if the program is
    // ending already.
    void fail(const Error& error) noexcept;

    // Takes a turn. Called by the node.
    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    // Returns a descriptor for a program with its own event loop. See Worker::descriptor() and Worker::prepare_sleep().
    Result<int> descriptor() { return worker().descriptor(); }
    [[nodiscard]] Instant prepare_sleep(Instant now) noexcept { return worker().prepare_sleep(now); }
    [[nodiscard]] const std::vector<std::uint32_t>& services() const noexcept { return service_numbers_; }
    // Answers clients that ask for the service at `place` in services(). `workers`: how many workers opened it.
    Status announce(std::size_t place, std::uint16_t workers);

private:
    struct Wanted {
        std::string host;
        std::uint32_t service = 0;
        net::IpAddress address{};  // set when the question is asked
        Connected callback = nullptr;
        void* context = nullptr;
        std::unique_ptr<erpc::Directory> question{};  // nullptr: the host has not been asked yet
        SessionId session{};                          // set when the service was found
    };

    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    [[nodiscard]] Qpn qpn_of(std::size_t place) const noexcept;
    Result<std::unique_ptr<erpc::Endpoint>> make_endpoint(std::size_t place);
    void look_for(Wanted wanted);
    void on_found(Wanted wanted, const erpc::ServiceAnswer& answer);
    void tell(Wanted wanted, const Result<SessionId>& session);
    static void session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason reason);

    NodeWorkerConfig config_;
    Shared& shared_;
    Instant now_{};
    pmd::HeapBlock memory_;
    rpc::MsgPool pool_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<erpc::Directory> directory_;
    std::unique_ptr<erpc::Endpoint> caller_owner_;
    erpc::Endpoint* caller_ = nullptr;  // valid while the endpoint ends, when completions may still post calls
    std::vector<std::unique_ptr<erpc::Endpoint>> services_;
    std::vector<std::uint32_t> service_numbers_;  // the numbers of services_
    std::vector<Wanted> looked_for_;              // connects that have not found their service yet
    std::vector<Wanted> opening_;                 // connects that wait for their session to open
    std::vector<SessionId> sessions_;
    std::uint32_t connects_ = 0;
    Instant leave_by_ = Instant::never();
};

// The awaiter of co_await connect().
class SessionAwaiter {
public:
    SessionAwaiter(NodeWorker& worker, std::string host, std::uint32_t service) noexcept
        : worker_(worker), host_(std::move(host)), service_(service) {}
    SessionAwaiter(const SessionAwaiter&) = delete;
    SessionAwaiter& operator=(const SessionAwaiter&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
        waiting_ = waiting;
        worker_.connect(
            host_, service_,
            [](void* context, NodeWorker&, const Result<SessionId>& session) {
                auto& self = *static_cast<SessionAwaiter*>(context);
                self.session_ = session;
                self.waiting_.resume();  // destroys self
            },
            this);
    }
    [[nodiscard]] Result<SessionId> await_resume() { return *session_; }

private:
    NodeWorker& worker_;
    std::string host_;
    std::uint32_t service_;
    std::optional<Result<SessionId>> session_;
    std::coroutine_handle<> waiting_{};
};

}  // namespace cairn::node
