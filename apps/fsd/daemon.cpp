#include "apps/fsd/daemon.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "fs/daemon/key_file.hpp"
#include "lib/base/secret.hpp"

namespace cairn::fsd {

namespace {

void say(const std::string& line) {
    fmt::print(stderr, "cairn-fsd: {}\n", line);
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::open(const Options& options) {
    Result<SipKey> key = SipKey{};
    if (!options.key_file.empty()) {
        key = fs::read_key_file(options.key_file);
    }
    if (!key.ok()) {
        return key.error();
    }
    Result<fs::MeetingPlace> place = fs::MeetingPlace::open(options.shm_prefix, options.socket_mode);
    if (!place.ok()) {
        return place.error();
    }
    fs::StoreWishes wishes = options.stores;
    if (!options.key_file.empty()) {
        wishes.cluster_key = key.value();
    }
    Result<fs::OpenStores> stores = fs::open_stores(wishes);
    if (!stores.ok()) {
        return stores.error();
    }
    auto news = fs::NewsBox::create();
    if (!news.ok()) {
        return news.error();
    }
    return std::unique_ptr<Daemon>(
        new Daemon(options, std::move(place).value(), std::move(stores).value(), std::move(news).value()));
}

Daemon::Daemon(const Options& options, fs::MeetingPlace place, fs::OpenStores stores, std::unique_ptr<fs::NewsBox> news)
    : options_(options),
      place_(std::move(place)),
      stores_(std::move(stores)),
      facts_(stores_.facts()),
      life_(draw_secret()[0]),
      news_(std::move(news)) {}

Daemon::~Daemon() = default;

Status Daemon::add_shard(std::unique_ptr<port::Port> port, Duration longest_wait, Instant now) {
    const fs::Cluster& cluster = options_.cluster;
    const std::size_t local = shards_.size();
    auto made = ShardTask::create(std::move(port),
                                  {static_cast<std::uint16_t>(stores_.stores.size()), static_cast<std::uint16_t>(local),
                                   longest_wait, !cluster.is_alone()},
                                  now);
    if (!made.ok()) {
        return made.error();
    }
    ShardTask& task = *shards_.emplace_back(std::move(made).value());
    const fs::ShardNumber number = cluster.number_of(static_cast<std::uint32_t>(local));
    if (!cluster.is_alone()) {
        if (const Status connected = connect(task, number); !connected.ok()) {
            return connected;
        }
    }
    task.host(*news_, *stores_.stores[local].store, facts_, number, now);
    if (shards_.size() == stores_.stores.size()) {
        std::vector<fs::ShardTenant*> peers(cluster.shards());
        for (std::uint32_t i = 0; i != shards_.size(); ++i) {
            peers[cluster.number_of(i)] = &shards_[i]->shard();
        }
        for (const auto& each : shards_) {
            if (const Status mailed = each->shard().set_peers(peers); !mailed.ok()) {
                return mailed;
            }
        }
    }
    return Nothing{};
}

Status Daemon::connect(ShardTask& task, fs::ShardNumber number) {
    fs::PeerLinkConfig links;
    links.cluster = options_.cluster;
    links.facts.from = number;
    links.facts.nodes = options_.cluster.node_count();
    links.facts.shards = facts_.daemons;
    links.facts.spread = facts_.spread;
    links.facts.chunk_bytes = stores_.chunk_bytes;
    links.facts.table_epoch = facts_.table.epoch();
    links.facts.life = life_;
    links.cluster_key = facts_.cluster_key;
    links.say = say;
    return task.connect(agent_, std::move(links), options_.ports.path_mtu_bytes);
}

std::vector<worker::Task*> Daemon::tasks() const {
    std::vector<worker::Task*> tasks;
    for (const auto& shard : shards_) {
        tasks.push_back(shard.get());
    }
    return tasks;
}

void Daemon::say_hello() const {
    for (std::size_t i = 0; i != stores_.stores.size(); ++i) {
        fmt::print("shard {}: {}\n", options_.cluster.number_of(static_cast<std::uint32_t>(i)),
                   stores_.stores[i].describe());
    }
    fmt::print(
        "clients: at most {}, and {} of a user; a channel takes {} KiB, and a client has at most {} to each shard, and "
        "buffers of {} KiB\n",
        options_.max_clients, options_.max_user_clients, fs::Segment::bytes_of(options_.shape) >> 10U,
        fs::SessionConfig::kChannels, options_.buffer_bytes >> 10U);
    fmt::print("ready on {}\n", place_.socket_path());
    std::fflush(stdout);
}

telemetry::CounterReading Daemon::read_counters() const {
    telemetry::CounterReading all;
    std::map<std::string_view, std::size_t> places;
    const auto visit = [&](const telemetry::CounterText& text, std::uint64_t value) {
        const auto [place, is_first] = places.try_emplace(text.name, all.texts.size());
        if (is_first) {
            all.texts.push_back(text);
            all.values.push_back(0);
        }
        all.values[place->second] += value;
    };
    counters_.visit(visit);
    for (const auto& shard : shards_) {
        shard->counters().visit(visit);
    }
    return all;
}

void Daemon::say_counters(const fs::Sessions& sessions) const {
    const telemetry::CounterReading now = read_counters();
    std::string line = fmt::format("clients {}", sessions.clients());
    for (std::size_t i = 0; i != now.texts.size(); ++i) {
        line += now.values[i] != 0 ? fmt::format(" {} {}", now.texts[i].name, now.values[i]) : "";
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

void Daemon::serve_clients(int stop_fd) {
    fs::SessionConfig config;
    fs::Welcome& welcome = config.welcome;
    welcome.root = fs::kRoot;
    welcome.chunk_bytes = stores_.chunk_bytes;
    welcome.spread = facts_.spread;
    welcome.daemons = facts_.daemons;
    welcome.placement_key = facts_.placement_key[0];
    welcome.shape = options_.shape;
    config.buffer_bytes = options_.buffer_bytes;
    welcome.table = facts_.table;
    config.key = facts_.cluster_key;
    config.node = options_.cluster.node;
    config.nodes = options_.cluster.node_count();
    config.max_clients = options_.max_clients;
    config.max_user_clients = options_.max_user_clients;
    config.own_user = ::geteuid();
    config.say = say;
    std::vector<fs::ShardDoor*> doors;
    for (const auto& shard : shards_) {
        welcome.local.push_back(options_.cluster.number_of(static_cast<std::uint32_t>(doors.size())));
        doors.push_back(&shard->shard());
    }
    config.counters_text = [this] {
        const telemetry::CounterReading now = read_counters();
        return telemetry::text_of(now.texts, now.values);
    };
    fs::Sessions sessions(place_.listening_fd(), *news_, doors, config);
    const telemetry::Registration registration = counters_.add(telemetry::CounterList().add(sessions.counters()));
    say_hello();
    const Duration span = seconds(options_.stats_s != 0 ? options_.stats_s : 3600);
    while (sessions.serve(stop_fd, span)) {
        if (options_.stats_s != 0) {
            say_counters(sessions);
        }
    }
    if (options_.stats_s != 0) {
        say_counters(sessions);
    }
}

void Daemon::wake() {
    for (const auto& shard : shards_) {
        shard->shard().wake();
    }
}

// Ends the shards. They answer with each other's help, so all of them turn. A call that takes longer, such as the
// cutting of a long file, is not waited for: its client asks the next daemon again.
Status Daemon::finish(Instant now) {
    constexpr int kTurns = 1000;
    for (const auto& each : shards_) {
        each->shard().stop_taking();
    }
    const auto is_unanswered = [](const auto& each) { return each->shard().is_unanswered(); };
    for (int turn = 0; turn != kTurns && std::ranges::any_of(shards_, is_unanswered); ++turn) {
        for (const auto& each : shards_) {
            (void)each->run_turn(now);
        }
    }
    for (const auto& each : shards_) {
        if (each->network() != nullptr) {
            each->network()->leave(now);
            (void)each->run_turn(now);
        }
    }
    Status all = Nothing{};
    for (const auto& each : shards_) {
        if (Status done = each->shard().settle(); !done.ok() && all.ok()) {
            all = std::move(done);
        }
    }
    return all;
}

}  // namespace cairn::fsd
