// ucmatose's exchange: when all connections are established, the server sends messages on each, and the client sends as
// many back. Then the server disconnects.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <variant>

#include "tests/interop/peer/peer.hpp"

namespace cairn::interop {

namespace {

class Cmatose {
public:
    Cmatose(Peer& peer, const Options& options) : peer_(peer), options_(options) {}

    void serve();
    void ask(const net::IpAddress& remote);

private:
    struct Link {
        std::unique_ptr<End> end;
        bool established = false;
        bool disconnected = false;  // by the other end, or at our request
        bool released = false;
    };

    [[nodiscard]] std::unique_ptr<End> make_end() {
        return std::make_unique<End>(peer_, std::max(2 * options_.message_bytes, 1U));
    }
    void take_events();
    void post_receives(End& end);
    void admit(verbs::ConnectionId id);
    void post_sends();
    void await_completions(bool receives);
    void await_all(std::string_view what, bool Link::*state);

    Peer& peer_;
    const Options& options_;
    std::unordered_map<std::uint32_t, Link> links_;
};

void Cmatose::post_receives(End& end) {
    const verbs::Sge place = end.mr().sge(options_.message_bytes, options_.message_bytes);
    for (std::uint32_t i = 0; i < options_.messages; ++i) {
        require(end.qp().post_receive(verbs::ReceiveRequest{i, {&place, 1}}) == verbs::PostVerdict::Posted,
                "a receive request is taken");
    }
}

void Cmatose::admit(verbs::ConnectionId id) {
    Link& link = links_[id.value];
    link.end = make_end();
    verbs::ConnectionChoice choice;
    (void)take(peer_.connector().accept(id, link.end->qp(), choice, peer_.now()));
    post_receives(*link.end);
}

void Cmatose::take_events() {
    while (const std::optional<cm::Event> event = peer_.connector().poll_event()) {
        if (const auto* requested = std::get_if<cm::Requested>(&*event)) {
            admit(requested->id);
        } else if (const auto* established = std::get_if<cm::Established>(&*event)) {
            Link& link = links_[established->id.value];
            link.established = true;
            if (!options_.ask.empty()) {
                post_receives(*link.end);
            }
        } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&*event)) {
            links_[leaving->id.value].disconnected = true;
            (void)take(peer_.connector().disconnect(leaving->id, {}, peer_.now()));
        } else if (const auto* over = std::get_if<cm::Disconnected>(&*event)) {
            links_[over->id.value].disconnected = true;
        } else if (const auto* released = std::get_if<cm::Released>(&*event)) {
            links_[released->id.value].released = true;
        } else {
            require(false, "no connection is refused");
        }
    }
}

void Cmatose::await_all(std::string_view what, bool Link::*state) {
    peer_.await(what, [&] {
        take_events();
        return links_.size() == options_.connections &&
               std::all_of(links_.begin(), links_.end(), [&](const auto& one) { return one.second.*state; });
    });
}

void Cmatose::post_sends() {
    for (auto& [id, link] : links_) {
        const std::span<std::uint8_t> text = link.end->mr().bytes().first(options_.message_bytes);
        for (std::size_t i = 0; i < text.size(); ++i) {
            text[i] = static_cast<std::uint8_t>(i + id);
        }
        const verbs::Sge place = link.end->mr().sge(0, options_.message_bytes);
        for (std::uint32_t i = 0; i < options_.messages; ++i) {
            verbs::SendRequest request;
            request.sges = {&place, 1};
            require(link.end->qp().post_send(request) == verbs::PostVerdict::Posted, "a work request is taken");
        }
    }
}

void Cmatose::await_completions(bool receives) {
    for (auto& [id, link] : links_) {
        for (std::uint32_t i = 0; i < options_.messages; ++i) {
            verbs::Cq& queue = receives ? link.end->receives() : link.end->sends();
            const verbs::Completion done =
                peer_.await_completion(queue, receives ? "a message arrives" : "a message is sent");
            require(done.status == verbs::CompletionStatus::Success, "a message succeeds");
            require(!receives || done.bytes == options_.message_bytes, "a message has its length");
        }
    }
}

void Cmatose::serve() {
    peer_.listen(options_.service_port, options_.connections);
    await_all("all connections stand", &Link::established);
    post_sends();
    await_completions(false);
    await_completions(true);
    for (auto& [id, link] : links_) {  // the client answers on the connection that it received from
        const std::span<const std::uint8_t> text = link.end->mr().bytes();
        require(std::memcmp(text.data(), text.data() + options_.message_bytes, options_.message_bytes) == 0,
                "what comes back is what was sent");
        (void)take(peer_.connector().disconnect(verbs::ConnectionId{id}, {}, peer_.now()));
    }
    await_all("all connections end", &Link::disconnected);
    await_all("all connections are released", &Link::released);
}

void Cmatose::ask(const net::IpAddress& remote) {
    const auto way = peer_.open_way(remote);
    verbs::ConnectTo to;
    to.remote = remote;
    to.port = options_.service_port;
    to.path_mtu_bytes = options_.ports.path_mtu_bytes;
    for (std::uint32_t i = 0; i < options_.connections; ++i) {
        auto end = make_end();
        const verbs::ConnectionId id = take(peer_.connector().connect(end->qp(), to, peer_.now()));
        links_[id.value].end = std::move(end);
    }
    await_all("all connections stand", &Link::established);
    await_completions(true);
    post_sends();
    await_completions(false);
    await_all("all connections end", &Link::disconnected);
    await_all("all connections are released", &Link::released);
}

}  // namespace

void run_cmatose(Peer& peer, const Options& options) {
    Cmatose cmatose(peer, options);
    if (options.ask.empty()) {
        cmatose.serve();
    } else {
        cmatose.ask(take(net::IpAddress::parse(options.ask)));
    }
}

}  // namespace cairn::interop
