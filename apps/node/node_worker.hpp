// One worker of a node: a port's queue with what a program needs for calls: services, sessions, message memory.
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

// A text as a message, and the reverse.
[[nodiscard]] inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A request type of a service, and what answers it.
struct Serving {
    std::uint8_t type;
    erpc::Handler handler;
    void* context = nullptr;
    std::uint32_t response_bytes_max = 0;  // see RequestTypes::set_handler()
};

// What the workers of a node share. All threads read and write it.
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

// Its own thread's, after the set-up. The set-up runs on the main thread.
class NodeWorker final : public app::WorkerProgram {
public:
    static constexpr std::uint16_t kServicesMost = 64;

    NodeWorker(const NodeWorkerConfig& config, std::unique_ptr<port::Port> port, pmd::HeapBlock memory, Shared& shared);
    ~NodeWorker() override;
    // Called by the node before the set-up.
    Status open(Instant now);

    [[nodiscard]] std::uint16_t number() const noexcept { return config_.number; }
    // The time of this turn. It never goes back.
    [[nodiscard]] const Instant& now() const noexcept { return now_; }

    // Opens a service: an endpoint of its own, whose handlers run on this worker. Only in the set-up; clients find it
    // from then on. A service that several workers open has the sessions of its clients spread over them; then worker 0
    // opens it too. Errors: the number is taken, or there are kServicesMost.
    Result<erpc::Endpoint*> open_service(std::uint32_t service);
    // The same, with handlers.
    Status serve(std::uint32_t service, std::initializer_list<Serving> handlers);

    // Finds the service on the host and opens a session to it. The callback runs on this worker, never before this
    // returns. Its error says what to do. The end of the worker is an error too.
    using Connected = void (*)(void* context, NodeWorker& worker, const Result<SessionId>& session);
    void connect(const std::string& host, std::uint32_t service, Connected callback, void* context);
    // The same by co_await, which yields the Result<SessionId>.
    [[nodiscard]] SessionAwaiter connect(std::string host, std::uint32_t service);

    // The endpoint that the sessions of connect() belong to.
    [[nodiscard]] erpc::Endpoint& caller() noexcept { return *caller_; }
    rpc::Posted post(SessionId session, const rpc::Call& call) noexcept { return caller_->post(session, call, now_); }
    // co_await yields the CallResult. `request` stays as it is until then.
    [[nodiscard]] rpc::CallAwaiter<erpc::Endpoint> call(SessionId session, std::uint8_t type,
                                                        std::span<const std::uint8_t> request,
                                                        Instant deadline = Instant::never()) noexcept;
    // co_await yields the typed result.
    template <rpc::PlainValue In, rpc::PlainValue Out>
    [[nodiscard]] auto invoke(SessionId session, const rpc::Method<In, Out>& method, const In& request) noexcept {
        return rpc::invoke(*caller_, session, method, request, now_);
    }

    // Ends the program: all workers end their sessions, and the node's run() returns the status. The first failure's
    // status counts.
    void stop(int exit_status = 0) noexcept;
    // Prints the error as the program's, and ends it with exit status 1. Does nothing if the program is ending already.
    void fail(const Error& error) noexcept;

    // What the node calls: the turn, and whether it was the last one.
    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    // For a program with its own event loop: Worker::descriptor(), Worker::prepare_sleep().
    Result<int> descriptor() { return worker().descriptor(); }
    [[nodiscard]] Instant prepare_sleep(Instant now) noexcept { return worker().prepare_sleep(now); }
    [[nodiscard]] const std::vector<std::uint32_t>& services() const noexcept { return service_numbers_; }
    // Tells clients of the service at `place` in services(), which `workers` workers have opened.
    Status announce(std::size_t place, std::uint16_t workers);

private:
    struct Wanted {
        std::string host;
        std::uint32_t service = 0;
        net::IpAddress address{};  // once its service is looked for
        Connected callback = nullptr;
        void* context = nullptr;
        std::unique_ptr<erpc::Directory> question{};  // nothing: it is to be asked
        SessionId session{};                          // once the service was found
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
    erpc::Endpoint* caller_ = nullptr;  // also while it ends: calls that end with it may be followed by others
    std::vector<std::unique_ptr<erpc::Endpoint>> services_;
    std::vector<std::uint32_t> service_numbers_;  // of services_
    std::vector<Wanted> looked_for_;              // their services are
    std::vector<Wanted> opening_;                 // their sessions are
    std::vector<SessionId> sessions_;
    std::uint32_t connects_ = 0;
    Instant leave_by_ = Instant::never();
};

// What co_await connect() waits on.
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
                self.waiting_.resume();  // ends self
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
