// Bytes as a script for a connection manager: messages of peers that know its names for connections, calls of its user,
// time. In all cases invariants hold, the bounds are kept, and everything that is abandoned goes away.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "lib/cm/manager.hpp"

namespace {

using namespace cairn;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

// Hands out the script; zeros when it has ended.
class Script {
public:
    explicit Script(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
    [[nodiscard]] bool ended() const { return rest_.empty(); }
    std::uint8_t octet() {
        const std::uint8_t first = rest_.empty() ? std::uint8_t{0} : rest_.front();
        rest_ = rest_.subspan(rest_.empty() ? 0 : 1);
        return first;
    }
    std::span<const std::uint8_t> take(std::size_t most) {
        const auto taken = rest_.first(std::min(most, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }

private:
    std::span<const std::uint8_t> rest_;
};

constexpr std::uint32_t kMostConnections = 5;
constexpr std::uint32_t kMostQueued = 6;
constexpr wire::ServiceId kService{0};

class Host {
public:
    explicit Host(Script script) : script_(script), manager_(config()) {
        require(manager_.listen(kService, 3) == std::nullopt);
        require(manager_.datagrams().listen(kService, {}, std::nullopt) == std::nullopt);
    }
    void run() {
        while (!script_.ended()) {
            step();
            require(manager_.connections() <= kMostConnections);
        }
        poll();
        for (const cm::ConnectionId id : ids_) {
            (void)manager_.abandon(id, now_);
        }
        for (int turns = 0; manager_.next_deadline() != Instant::never(); ++turns) {
            require(turns < 1000);
            now_ = std::max(now_, manager_.next_deadline());
            manager_.on_timeout(now_);
            poll();
        }
        poll();
        require(manager_.connections() == 0);
    }

private:
    static cm::Config config() {
        cm::Config config;
        config.max_connections = kMostConnections;
        config.max_datagram_requests = 2;
        config.max_queued = kMostQueued;
        config.max_retries = wire::CmRetries{2};
        return config;
    }
    cm::Route route() {
        const bool other = script_.octet() % 8 == 7;
        return {net::IpAddress::from_v4(0x0a000001), net::IpAddress::from_v4(other ? 0x0a000003 : 0x0a000002)};
    }
    cm::ConnectionId known_id() {
        const std::uint8_t which = script_.octet();
        return ids_.empty() ? cm::ConnectionId{which} : ids_[which % ids_.size()];
    }
    // Returns bytes that all sides may put into private data.
    std::span<const std::uint8_t> data() { return script_.take(script_.octet() % 4); }

    void step() {
        switch (script_.octet() % 5) {
            case 0:
                return message();
            case 1:
                return call();
            case 2:
                now_ = now_ + microseconds(std::int64_t{1} << script_.octet() % 27U);
                return manager_.on_timeout(now_);
            case 3:
                return poll();
            default:
                return manager_.on_mad(route(), script_.take(wire::kMadBytes), now_);
        }
    }
    // Delivers a message of any kind from the script, but with names that the manager knows and the fields that a REQ
    // needs.
    void message() {
        constexpr std::array<std::uint8_t, 11> kAttributes{0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
                                                           0x16, 0x17, 0x18, 0x19, 0x1a};
        const cm::Route route = this->route();
        wire::MadBytes mad{};
        const std::uint8_t attribute = kAttributes[script_.octet() % kAttributes.size()];
        const std::uint8_t theirs = script_.octet() % 4;
        wire::CommIds ids{wire::CommId{theirs}, known_id()};
        const auto body = script_.take(24);
        std::copy(body.begin(), body.end(), mad.begin() + wire::MadHeader::kBytes + 8);
        emit_at(mad.data(), wire::MadHeader{theirs, attribute});
        wire::RawCommIds raw;
        raw.set(ids);
        std::memcpy(mad.data() + wire::MadHeader::kBytes, &raw, sizeof(raw));
        const auto parsed = wire::CmMad::parse(mad);
        if (parsed.ok() && std::holds_alternative<wire::Req>(parsed.value().message)) {
            wire::CmMad request = parsed.value();
            wire::Req& req = std::get<wire::Req>(request.message);
            req.service_id = kService;
            req.path_mtu = wire::path_mtu_of(1024);
            req.local_qpn = Qpn{script_.octet() % 4U};
            req.primary.local_gid = route.remote.octets();
            req.primary.remote_gid = route.local.octets();
            mad = request.bytes();
        }
        manager_.on_mad(route, mad, now_);
    }
    void call() {
        const cm::ConnectionId id = known_id();
        switch (script_.octet() % 10) {
            case 0: {
                cm::ConnectRequest request;
                request.route = route();
                request.qpn = Qpn{script_.octet()};
                const auto connected = manager_.connect(request, now_);
                if (connected.ok()) {
                    ids_.push_back(connected.value());
                }
                return;
            }
            case 1: {
                cm::AcceptParameters accepted;
                accepted.private_data = data();
                return (void)manager_.accept(id, accepted, now_);
            }
            case 2:
                return (void)manager_.ready(id, data(), now_);
            case 3:
                return (void)manager_.reject(id, {wire::RejectReason::Consumer, data(), {}}, now_);
            case 4:
                return (void)manager_.disconnect(id, data(), now_);
            case 5:
                return (void)manager_.abandon(id, now_);
            case 6:
                return (void)manager_.ask_for_time(id, wire::CmTimeout{script_.octet()}, data());
            case 7:
                return (void)manager_.established(id);
            case 8:
                return (void)manager_.datagrams().resolve({route(), kService}, now_);
            default:
                return (void)manager_.datagrams().answer(cm::DatagramId{script_.octet()}, {}, {}, now_);
        }
    }
    void poll() {
        while (const std::optional<cm::Event> event = manager_.poll_event()) {
            if (const auto* requested = std::get_if<cm::Requested>(&*event)) {
                ids_.push_back(requested->id);
            }
        }
        while (const std::optional<cm::OutMad> mad = manager_.poll_transmit()) {
            require(wire::CmMad::parse(mad->bytes).ok());
        }
    }

    Script script_;
    cm::Manager manager_;
    Instant now_{};
    std::vector<cm::ConnectionId> ids_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Host(Script(std::span(data, size))).run();
    return 0;
}
