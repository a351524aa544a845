#include "apps/rpcbench/clients.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "apps/rpcbench/ud_endpoint.hpp"
#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::rpcbench {

template <class Endpoint>
void ClientsOf<Endpoint>::Until::await_suspend(std::coroutine_handle<> waiting) const noexcept {
    client.waiting = waiting;
    self.waiting_.push_back({until, &client});
    std::push_heap(self.waiting_.begin(), self.waiting_.end(), std::mem_fn(&Waiting::is_after));
    self.next_due_ = self.waiting_.front().until;
}

template <class Endpoint>
void ClientsOf<Endpoint>::begin() {
    const auto active = static_cast<std::size_t>(
        std::ceil(static_cast<double>(sessions_.size()) * options_.clients.active_percent / 100));
    clients_.resize(std::min(std::max<std::size_t>(active, 1), sessions_.size()));
    waiting_.reserve(clients_.size());
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
        clients_[i].number = i;
        if (is_open_loop()) {
            const double mean_ns = static_cast<double>(clients_.size()) * options_.clients.batch / rate_per_ns();
            clients_[i].arrivals = Arrivals({worker_, i}, mean_ns, started());
        }
        rpc::start(live(clients_[i]));
    }
}

template <class Endpoint>
rpc::Task<> ClientsOf<Endpoint>::live(Client& client) {
    co_await Until{*this, client, is_open_loop() ? next_batch(client) : figures_.now()};
    while (phase_ == Phase::Calling && figures_.failure().empty()) {
        begin_batch(client);
        co_await BatchEnd{client};
        co_await Until{*this, client, next_batch(client)};
    }
}

template <class Endpoint>
Instant ClientsOf<Endpoint>::next_batch(const Client& client) const noexcept {
    return is_open_loop() ? client.arrivals.due() : figures_.now() + microseconds(options_.clients.think_us);
}

template <class Endpoint>
void ClientsOf<Endpoint>::begin_batch(Client& client) noexcept {
    const Instant due = client.arrivals.due();
    if (is_open_loop()) {
        client.arrivals.advance();
    }
    client.pending = options_.clients.batch;
    for (std::uint32_t i = 0; i < options_.clients.batch; ++i) {
        const std::uint32_t slot = client.number * options_.clients.batch + i;
        slots_[slot].due = due;
        call(client, slot);
    }
}

template <class Endpoint>
void ClientsOf<Endpoint>::call(Client& client, std::uint32_t slot) noexcept {
    rpc::Call call = describe(slot);
    call.completion = on_completed;
    call.context = this;
    call.ends_with_endpoint = true;  // the client's frame ends with its last call
    if (!accepted(endpoint_.post(sessions_[client.number], call, figures_.now()).verdict)) [[unlikely]] {
        --client.pending;
    }
}

template <class Endpoint>
void ClientsOf<Endpoint>::on_completed(void* context, const rpc::CallResult& result) {
    auto& self = *static_cast<ClientsOf*>(context);
    Client& client = self.clients_[result.tag / self.options_.clients.batch];
    if (self.is_sound(result)) {
        const Instant due = self.slots_[result.tag].due;
        (void)self.take(result, self.is_open_loop() ? self.figures_.now() - due : result.latency);
    }
    if (--client.pending == 0) {
        std::exchange(client.waiting, {}).resume();
    }
}

template <class Endpoint>
void ClientsOf<Endpoint>::resume_first() noexcept {
    std::pop_heap(waiting_.begin(), waiting_.end(), std::mem_fn(&Waiting::is_after));
    Client& client = *waiting_.back().client;
    waiting_.pop_back();
    std::exchange(client.waiting, {}).resume();
}

template <class Endpoint>
bool ClientsOf<Endpoint>::begin_due() noexcept {
    bool any = false;
    while (!waiting_.empty() && waiting_.front().until <= figures_.now()) {
        resume_first();
        any = true;
    }
    next_due_ = waiting_.empty() ? Instant::never() : waiting_.front().until;
    return any;
}

// Resumes all that wait, which end at once.
template <class Endpoint>
void ClientsOf<Endpoint>::end() {
    while (!waiting_.empty()) {
        resume_first();
    }
    next_due_ = Instant::never();
}

template <class Endpoint>
std::uint64_t ClientsOf<Endpoint>::not_begun(Instant now) const noexcept {
    std::uint64_t batches = 0;
    for (const Client& client : clients_) {
        batches += client.arrivals.expected_by(now);
    }
    return batches * options_.clients.batch;
}

template class ClientsOf<erpc::Endpoint>;
template class ClientsOf<copyrpc::Endpoint>;
template class ClientsOf<scalerpc::Endpoint>;
template class ClientsOf<UdEndpoint>;

}  // namespace cairn::rpcbench
