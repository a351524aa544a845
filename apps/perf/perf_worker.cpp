#include "apps/perf/perf_worker.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <type_traits>
#include <variant>

#include "lib/port/qpn_owners.hpp"

namespace cairn::perf {

namespace {

constexpr Duration kLook = milliseconds(5);

struct StatusText {
    verbs::CompletionStatus status;
    std::string_view text;
};
constexpr std::array kStatusTexts{
    StatusText{verbs::CompletionStatus::RetryExceeded, "the peer does not answer; is it still running?"},
    StatusText{verbs::CompletionStatus::RnrRetryExceeded, "the peer posts no receive requests"},
    StatusText{verbs::CompletionStatus::Flushed, "the connection ended"},
    StatusText{verbs::CompletionStatus::RemoteAccess, "the peer refused access to its memory"},
    StatusText{verbs::CompletionStatus::RemoteInvalidRequest, "the peer found a request invalid"},
    StatusText{verbs::CompletionStatus::RemoteOperation, "the peer could not carry out a request"},
};

}  // namespace

std::string_view text_of(verbs::CompletionStatus status) noexcept {
    const auto found = std::find_if(kStatusTexts.begin(), kStatusTexts.end(),
                                    [status](const StatusText& text) { return text.status == status; });
    return found == kStatusTexts.end() ? "an operation failed" : found->text;
}

std::string_view text_of(const cm::PrivateBytes& said) noexcept {
    const std::string_view whole(reinterpret_cast<const char*>(said.octets.data()), said.size);
    return whole.substr(0, whole.find('\0'));
}

std::optional<verbs::ConnectionId> ended_by(const cm::Event& event) noexcept {
    return std::visit(
        []<class Kind>(const Kind& kind) -> std::optional<verbs::ConnectionId> {
            if constexpr (std::is_same_v<Kind, cm::Released> || std::is_same_v<Kind, cm::Rejected> ||
                          std::is_same_v<Kind, cm::Unreachable>) {
                return kind.id;
            } else {
                return std::nullopt;
            }
        },
        event);
}

Status PerfWorker::open_device(const roce::MemoryTable::Seed& seed, Instant now) {
    constexpr std::uint32_t kMost = 16384 + 64;  // queue pairs; also regions, one for each client
    roce::EngineConfig config;
    config.max_queue_pairs = kMost;
    config.max_regions = kMost;
    config.owner_bits = port::QpnOwners(crew().workers).bits();
    config.owner = seat_.number;
    config.seed = seed;
    config.congestion = options_.congestion;
    config.context_cache = options_.context_cache;
    config.link_bits_per_s = options_.link_gbit * 1e9;
    const Status opened = open_worker(config, now);
    if (!opened.ok()) {
        return opened;
    }
    device_ = std::make_unique<verbs::Device>(worker());
    pd_ = device_->create_pd();
    connections::HomeConfig connections;
    connections.cm.max_retries = wire::CmRetries{7};
    connections.udp_source_port = static_cast<std::uint16_t>(connections.udp_source_port + seat_.number);
    auto home = connections::Home::create(crew().agent, worker(), connections);
    if (!home.ok()) {
        return home.error();
    }
    home_ = std::move(home).value();
    connector_ = std::make_unique<verbs::Connector>(*device_, *home_);
    join();
    return Nothing{};
}

bool PerfWorker::on_turn(Instant now) noexcept {
    bool worked = false;
    while (const std::optional<cm::Event> event = connector_->poll_event()) {
        on_event(*event, now);
        worked = true;
    }
    worked = step(now) || worked;
    if (now >= next_look_) {
        next_look_ = now + kLook;
        look(now);
    }
    return worked;
}

verbs::ConnectionChoice PerfWorker::choice(std::span<const std::uint8_t> private_data) const noexcept {
    verbs::ConnectionChoice made;
    made.access = kRemoteRights;
    made.features &= options_.go_back_n ? ~wire::kFeatureSelective : ~0U;
    made.private_data = private_data;
    return made;
}

void PerfWorker::fail(std::string_view why) {
    if (!failed_) {
        std::fprintf(stderr, "cairn-perf: %.*s\n", static_cast<int>(why.size()), why.data());
    }
    failed_ = true;
    crew().failed.store(true, std::memory_order_relaxed);
}

}  // namespace cairn::perf
