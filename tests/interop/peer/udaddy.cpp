// udaddy's exchange: the client finds a queue pair for each of its own, and sends datagrams to it that carry its
// number. It gets as many back from the queue pair that received them.
#include <array>
#include <cstring>
#include <map>
#include <variant>
#include <vector>

#include "tests/interop/peer/peer.hpp"

namespace cairn::interop {

namespace {

constexpr std::uint32_t kGrhBytes = roce::kGrhBytes;

struct Address {
    Qpn qpn{};
    Qkey qkey{};
};

class Udaddy {
public:
    Udaddy(Peer& peer, const Options& options) : peer_(peer), options_(options) {}

    void serve();
    void ask(const net::IpAddress& remote);

private:
    // Memory: the message to send, then a place for each received message, with its GRH in front.
    [[nodiscard]] std::uint32_t place_bytes() const noexcept { return options_.message_bytes + kGrhBytes; }
    [[nodiscard]] std::uint32_t place_at(std::uint32_t which) const noexcept { return (1 + which) * place_bytes(); }
    DatagramEnd& add_end();
    void post_sends(DatagramEnd& end, const verbs::Ah& to, const Address& address);
    void await_sent(DatagramEnd& end);
    // Waits for all messages of this end. Returns the last one's completion.
    verbs::Completion await_received(DatagramEnd& end, const net::IpAddress& from);
    [[nodiscard]] std::vector<Address> resolve_all(const net::IpAddress& remote);
    void check_echo(DatagramEnd& end);

    Peer& peer_;
    const Options& options_;
    std::vector<std::unique_ptr<DatagramEnd>> ends_;
};

DatagramEnd& Udaddy::add_end() {
    DatagramEnd& end =
        *ends_.emplace_back(std::make_unique<DatagramEnd>(peer_, place_at(std::max(options_.messages, 1U))));
    require(options_.message_bytes <= end.qp().most_bytes(), "a message fits a packet");
    for (std::uint32_t i = 0; i < options_.messages; ++i) {
        const verbs::Sge place = end.mr().sge(place_at(i), place_bytes());
        require(end.qp().post_receive(verbs::ReceiveRequest{i, {&place, 1}}) == verbs::PostVerdict::Posted,
                "a receive request is taken");
    }
    return end;
}

void Udaddy::post_sends(DatagramEnd& end, const verbs::Ah& to, const Address& address) {
    const std::span<std::uint8_t> text = end.mr().bytes().first(options_.message_bytes);
    for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<std::uint8_t>(i + end.qp().qpn().value);
    }
    const verbs::Sge place = end.mr().sge(0, options_.message_bytes);
    for (std::uint32_t i = 0; i < options_.messages; ++i) {
        verbs::DatagramRequest request;
        request.work.opcode = verbs::WorkOpcode::SendWithImmediate;
        request.work.immediate = end.qp().qpn().value;
        request.work.sges = {&place, 1};
        request.to = &to;
        request.qpn = address.qpn;
        request.qkey = address.qkey;
        require(end.qp().post_send(request) == verbs::PostVerdict::Posted, "a work request is taken");
    }
}

void Udaddy::await_sent(DatagramEnd& end) {
    for (std::uint32_t i = 0; i < options_.messages; ++i) {
        const verbs::Completion done = peer_.await_completion(end.sends(), "a message is sent");
        require(done.status == verbs::CompletionStatus::Success, "a message is sent");
    }
}

verbs::Completion Udaddy::await_received(DatagramEnd& end, const net::IpAddress& from) {
    verbs::Completion done;
    for (std::uint32_t i = 0; i < options_.messages; ++i) {
        done = peer_.await_completion(end.receives(), "a message arrives");
        require(done.status == verbs::CompletionStatus::Success && done.bytes == place_bytes() && done.has_grh,
                "a message has its length, and a GRH in front");
        require(done.has_immediate && Qpn{done.immediate} == done.source_qpn, "it tells the queue pair it is from");
        const auto grh = end.mr().bytes().subspan(place_at(static_cast<std::uint32_t>(done.wr_id)), kGrhBytes);
        require(verbs::source_of(grh) == from, "its GRH tells the address it is from");
    }
    return done;
}

void Udaddy::serve() {
    (void)take(peer_.connector().listen_datagrams(options_.service_port));
    Peer::tell_ready();
    net::IpAddress remote;
    while (ends_.size() < options_.connections) {
        const auto asked = peer_.await_event<cm::DatagramRequested>("somebody asks for a queue pair");
        remote = asked.route.remote;
        const cm::DatagramService service{add_end().qp().qpn(), verbs::kRdmaCmQkey, {}};
        (void)take(peer_.connector().answer(asked.id, service, peer_.now()));
    }
    const auto way = peer_.open_way(remote);
    for (const auto& end : ends_) {
        const verbs::Completion last = await_received(*end, remote);
        post_sends(*end, *way, {last.source_qpn, verbs::kRdmaCmQkey});
        await_sent(*end);
    }
}

std::vector<Address> Udaddy::resolve_all(const net::IpAddress& remote) {
    std::map<std::uint32_t, std::size_t> asked;
    for (std::size_t i = 0; i < options_.connections; ++i) {
        (void)add_end();
        asked[take(peer_.connector().resolve(remote, options_.service_port, {}, peer_.now())).value] = i;
    }
    std::vector<Address> found(options_.connections);
    for (std::size_t i = 0; i < options_.connections; ++i) {
        const auto resolved = peer_.await_event<cm::Resolved>("the server tells a queue pair");
        require(resolved.status == wire::SidrStatus::Valid, "the service is there");
        const auto which = asked.find(resolved.id.value);
        require(which != asked.end(), "it was asked for");
        found[which->second] = {resolved.qpn, resolved.qkey};
    }
    return found;
}

// Checks udaddy's answer: it sends back the GRH that it saw, then our message as far as it fits.
void Udaddy::check_echo(DatagramEnd& end) {
    const std::span<const std::uint8_t> sent = end.mr().bytes().first(options_.message_bytes);
    const auto came = end.mr().bytes().subspan(place_at(0) + kGrhBytes, options_.message_bytes);
    require(came.size() <= kGrhBytes || std::memcmp(came.data() + kGrhBytes, sent.data(), came.size() - kGrhBytes) == 0,
            "what comes back is what was sent");
}

void Udaddy::ask(const net::IpAddress& remote) {
    const auto way = peer_.open_way(remote);
    const std::vector<Address> servers = resolve_all(remote);
    for (std::size_t i = 0; i < servers.size(); ++i) {
        post_sends(*ends_[i], *way, servers[i]);
    }
    for (const auto& end : ends_) {
        await_sent(*end);
        (void)await_received(*end, remote);
        check_echo(*end);
    }
}

}  // namespace

void run_udaddy(Peer& peer, const Options& options) {
    Udaddy udaddy(peer, options);
    if (options.ask.empty()) {
        udaddy.serve();
    } else {
        udaddy.ask(take(net::IpAddress::parse(options.ask)));
    }
}

}  // namespace cairn::interop
