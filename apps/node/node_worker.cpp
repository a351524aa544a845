#include "apps/node/node_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "apps/common/session_end.hpp"
#include "lib/base/secret.hpp"
#include "lib/port/qpn_owners.hpp"

namespace cairn::node {

namespace {

constexpr std::uint32_t kFirstQpn = 0x1000;  // a multiple of all steps
constexpr Qkey kQkey{0x0205};                // peers of eRPC have the same
constexpr std::uint16_t kSessionsMost = 4096;
constexpr Duration kFarewell = milliseconds(200);  // for the ends of sessions to reach their peers

bool is_number(std::uint32_t service) noexcept {
    return service != 0 && service <= 0xffff;
}

Error error_of(const std::string& host, std::uint32_t service, const char* why) {
    return {fmt::format("service {} of {}: {}", service, host, why), "start its server first, and name it as it does"};
}

}  // namespace

NodeWorker::NodeWorker(const NodeWorkerConfig& config, std::unique_ptr<port::Port> port, pmd::HeapBlock memory,
                       Shared& shared)
    : WorkerProgram(std::move(port)),
      config_(config),
      shared_(shared),
      memory_(std::move(memory)),
      pool_(memory_.bytes()) {}

// Calls the callback of each waiting connect() and call with an error, once. A request that a callback makes then is
// dropped.
NodeWorker::~NodeWorker() {
    std::vector<Wanted> waiting = std::exchange(looked_for_, {});
    std::move(opening_.begin(), opening_.end(), std::back_inserter(waiting));
    opening_.clear();
    for (Wanted& each : waiting) {
        const Error error = error_of(each.host, each.service, "this worker ends");
        tell(std::move(each), error);
    }
    caller_owner_.reset();
}

Status NodeWorker::open(Instant now) {
    now_ = now;
    const Status opened = open_worker({.max_queue_pairs = 1,
                                       .max_regions = 1,
                                       .owner_bits = port::QpnOwners(config_.workers).bits(),
                                       .owner = config_.number,
                                       .seed = derive_key(draw_secret(), Purpose::EngineNumbers)},
                                      now);
    if (!opened.ok()) {
        return opened;
    }
    auto home = connections::Home::create(shared_.agent, worker(), {});
    if (!home.ok()) {
        return home.error();
    }
    home_ = std::move(home).value();
    directory_ = std::make_unique<erpc::Directory>(*home_);
    auto caller = make_endpoint(0);
    if (!caller.ok()) {
        return caller.error();
    }
    caller_owner_ = std::move(caller).value();
    caller_ = caller_owner_.get();
    caller_->set_session_callback(session_changed, this);
    join();
    return Nothing{};
}

// Returns the number of the queue pair at `place`. Place 0 is the caller's; services follow.
Qpn NodeWorker::qpn_of(std::size_t place) const noexcept {
    return Qpn{kFirstQpn + static_cast<std::uint32_t>(place) * port::QpnOwners(config_.workers).step() +
               config_.number};
}

Result<std::unique_ptr<erpc::Endpoint>> NodeWorker::make_endpoint(std::size_t place) {
    erpc::EndpointConfig config;
    config.qp.qpn = qpn_of(place);
    config.qp.qkey = kQkey;
    config.qp.path_mtu_bytes = config_.path_mtu_bytes;
    config.sessions_max = kSessionsMost;
    config.seed = draw_secret();
    return erpc::Endpoint::create(config, worker(), pool_);
}

Result<erpc::Endpoint*> NodeWorker::open_service(std::uint32_t service) {
    if (!is_number(service)) {
        return Error{fmt::format("service {} is out of range", service), "number services from 1 to 65535"};
    }
    if (std::find(service_numbers_.begin(), service_numbers_.end(), service) != service_numbers_.end()) {
        return Error{fmt::format("service {} of {} has a user already", service, worker().name()),
                     "give each service a number of its own"};
    }
    if (services_.size() == kServicesMost) {
        return Error{fmt::format("service {} would be one more than the {} of a worker", service, kServicesMost),
                     "tell requests apart by their types instead"};
    }
    auto made = make_endpoint(services_.size() + 1);
    if (!made.ok()) {
        return made.error();
    }
    services_.push_back(std::move(made).value());
    service_numbers_.push_back(service);
    return services_.back().get();
}

Status NodeWorker::serve(std::uint32_t service, std::initializer_list<Serving> handlers) {
    const Result<erpc::Endpoint*> opened = open_service(service);
    if (!opened.ok()) {
        return opened.error();
    }
    for (const Serving& each : handlers) {
        const Status set = opened.value()->set_handler(each.type, each.handler, each.context, each.response_bytes_max);
        if (!set.ok()) {
            return set;
        }
    }
    return Nothing{};
}

Status NodeWorker::announce(std::size_t place, std::uint16_t workers) {
    const auto service = static_cast<std::uint16_t>(service_numbers_[place]);
    return directory_->serve(service, {qpn_of(place + 1), kQkey, workers});
}

void NodeWorker::connect(const std::string& host, std::uint32_t service, Connected callback, void* context) {
    looked_for_.push_back({host, service, {}, callback, context});
}

SessionAwaiter NodeWorker::connect(std::string host, std::uint32_t service) {
    return {*this, std::move(host), service};
}

rpc::CallAwaiter<erpc::Endpoint> NodeWorker::call(SessionId session, std::uint8_t type,
                                                  std::span<const std::uint8_t> request, Instant deadline) noexcept {
    rpc::Call what;
    what.type = type;
    what.request = request;
    what.deadline = deadline;
    return rpc::call(*caller_, session, what, now_);
}

void NodeWorker::stop(int exit_status) noexcept {
    int none = 0;
    shared_.exit_status.compare_exchange_strong(none, exit_status);
    shared_.stopping.store(true, std::memory_order_release);
}

void NodeWorker::fail(const Error& error) noexcept {
    if (!shared_.stopping.load(std::memory_order_acquire)) {
        std::fprintf(stderr, "%s: %s\n", shared_.program.c_str(), error.text().c_str());
        stop(1);
    }
}

bool NodeWorker::run_turn(Instant now) noexcept {
    now_ = now;
    return worker().turn(now);
}

bool NodeWorker::on_turn(Instant now) noexcept {
    if (!looked_for_.empty()) [[unlikely]] {
        for (Wanted& each : std::exchange(looked_for_, {})) {
            look_for(std::move(each));
        }
    }
    if (shared_.stopping.load(std::memory_order_acquire) && leave_by_ == Instant::never()) {
        leave_by_ = now + kFarewell;
        for (const SessionId session : std::exchange(sessions_, {})) {
            caller_->disconnect(session, now);
        }
    }
    return false;
}

Instant NodeWorker::next_deadline() const noexcept {
    const bool any_new = std::any_of(looked_for_.begin(), looked_for_.end(),
                                     [](const Wanted& wanted) { return wanted.question == nullptr; });
    return any_new ? now_ : leave_by_;
}

bool NodeWorker::finished(Instant now) const noexcept {
    return leave_by_ != Instant::never() && (caller_->sessions_open() == 0 || now >= leave_by_);
}

// Asks for the service, or takes the answer. The callback may connect again.
void NodeWorker::look_for(Wanted wanted) {
    if (wanted.question != nullptr) {
        if (const std::optional<erpc::ServiceAnswer> answer = wanted.question->poll_answer()) {
            on_found(std::move(wanted), *answer);
        } else {
            looked_for_.push_back(std::move(wanted));
        }
        return;
    }
    const Result<net::IpAddress> host = net::IpAddress::parse(wanted.host);
    Status asked = host.ok() ? Status(Nothing{}) : Status(host.error());
    if (asked.ok() && !is_number(wanted.service)) {
        asked = error_of(wanted.host, wanted.service, "services are numbered from 1 to 65535");
    }
    if (asked.ok()) {
        wanted.address = host.value();
        wanted.question = std::make_unique<erpc::Directory>(*home_);
        asked = wanted.question->ask(wanted.address, static_cast<std::uint16_t>(wanted.service), now_);
    }
    if (asked.ok()) {
        looked_for_.push_back(std::move(wanted));
    } else {
        tell(std::move(wanted), asked.error());
    }
}

void NodeWorker::on_found(Wanted wanted, const erpc::ServiceAnswer& answer) {
    if (answer.outcome != erpc::ServiceAnswer::Outcome::Found) {
        const Error error = error_of(wanted.host, wanted.service, erpc::text_of(answer.outcome));
        tell(std::move(wanted), error);
        return;
    }
    const auto source_port = static_cast<std::uint16_t>(port::kFirstUdpSourcePort + number());
    roce::UdAddress peer;
    peer.path = port().open_path({port().local_address(), wanted.address, source_port, 0}, now_);
    peer.qpn = Qpn{answer.offer.qpn.value + (number() + connects_++) % answer.offer.workers};
    peer.qkey = answer.offer.qkey;
    const Result<SessionId> session = caller_->connect(peer, now_);
    if (!session.ok()) {
        tell(std::move(wanted), session.error());
        return;
    }
    wanted.session = session.value();
    opening_.push_back(std::move(wanted));
}

void NodeWorker::tell(Wanted wanted, const Result<SessionId>& session) {
    if (session.ok()) {
        sessions_.push_back(session.value());
    }
    wanted.callback(wanted.context, *this, session);
}

void NodeWorker::session_changed(void* context, SessionId session, erpc::SessionEvent event,
                                 erpc::RefuseReason reason) {
    auto& self = *static_cast<NodeWorker*>(context);
    std::erase(self.sessions_, session);
    const auto found = std::find_if(self.opening_.begin(), self.opening_.end(),
                                    [session](const Wanted& wanted) { return wanted.session == session; });
    if (found == self.opening_.end()) {
        return;
    }
    Wanted wanted = std::move(*found);
    self.opening_.erase(found);
    if (event == erpc::SessionEvent::Connected) {
        self.tell(std::move(wanted), session);
    } else {
        const Error error{fmt::format("service {} of {}", wanted.service, wanted.host), app::why(reason)};
        self.tell(std::move(wanted), error);
    }
}

}  // namespace cairn::node
