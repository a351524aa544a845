#include "apps/rpcbench/clients.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/rpcbench/ud_endpoint.hpp"
#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::rpcbench {

template <class Endpoint>
void ClientsOf<Endpoint>::Thought::await_suspend(std::coroutine_handle<> waiting) const noexcept {
    client.waiting = waiting;
    const Instant until = self.figures_.now() + microseconds(self.options_.clients.think_us);
    self.thinking_.push_back({until, &client});
    self.next_due_ = std::min(self.next_due_, until);
}

template <class Endpoint>
void ClientsOf<Endpoint>::begin() {
    const auto active = static_cast<std::size_t>(
        std::ceil(static_cast<double>(sessions_.size()) * options_.clients.active_percent / 100));
    clients_.resize(std::min(std::max<std::size_t>(active, 1), sessions_.size()));
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
        clients_[i].number = i;
        rpc::start(live(clients_[i]));
    }
}

template <class Endpoint>
rpc::Task<> ClientsOf<Endpoint>::live(Client& client) {
    while (phase_ == Phase::Calling && figures_.failure().empty()) {
        client.pending = options_.clients.batch;
        for (std::uint32_t i = 0; i < options_.clients.batch; ++i) {
            call(client, client.number * options_.clients.batch + i);
        }
        co_await BatchEnd{client};
        co_await Thought{*this, client};
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
        (void)self.take(result, result.latency);
    }
    if (--client.pending == 0) {
        std::exchange(client.waiting, {}).resume();
    }
}

template <class Endpoint>
bool ClientsOf<Endpoint>::begin_due() noexcept {
    bool any = false;
    while (!thinking_.empty() && thinking_.front().until <= figures_.now()) {
        Client& client = *thinking_.front().client;
        thinking_.pop_front();
        std::exchange(client.waiting, {}).resume();
        any = true;
    }
    next_due_ = thinking_.empty() ? Instant::never() : thinking_.front().until;
    return any;
}

// Whoever thinks ends at once.
template <class Endpoint>
void ClientsOf<Endpoint>::end() {
    while (!thinking_.empty()) {
        Client& client = *thinking_.front().client;
        thinking_.pop_front();
        std::exchange(client.waiting, {}).resume();
    }
    next_due_ = Instant::never();
}

template class ClientsOf<erpc::Endpoint>;
template class ClientsOf<copyrpc::Endpoint>;
template class ClientsOf<scalerpc::Endpoint>;
template class ClientsOf<UdEndpoint>;

}  // namespace cairn::rpcbench
