#include "apps/fsd/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <charconv>
#include <optional>

#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"
#include "apps/fsd/config_file.hpp"
#include "fs/daemon/sessions.hpp"

namespace cairn::fsd {

namespace {

// Returns the bytes that "64M" names; nullopt if it is no size.
std::optional<std::uint64_t> size_of(const std::string& text) {
    std::uint64_t count = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const std::string_view units = "KMGT";
    const std::size_t which = unit.size() == 1 ? units.find(unit.front()) : std::string_view::npos;
    const unsigned shift = which == std::string_view::npos ? 0 : 10 * static_cast<unsigned>(which + 1);
    if (fault != std::errc{} || (!unit.empty() && shift == 0) || count > UINT64_MAX >> shift) {
        return std::nullopt;
    }
    return count << shift;
}

// Adds an argument for a size. `take` gets the bytes, and returns false if it does not take that size; `form` describes
// the sizes that it takes.
template <class Take>
CLI::Option* add_size(CLI::App& app, const std::string& name, const std::string& what, const std::string& form,
                      Take take) {
    return app
        .add_option_function<std::string>(
            name,
            [name, form, take](const std::string& text) {
                const std::optional<std::uint64_t> bytes = size_of(text);
                if (!bytes || !take(*bytes)) {
                    throw CLI::ValidationError(name, fmt::format("{} is not {}", text, form));
                }
            },
            fmt::format("{}: {}", what, form))
        ->type_name("BYTES[K|M|G]");
}

void add_store(CLI::App& app, fs::StoreWishes& stores) {
    app.add_option("--data-path", stores.data_path, "file of the store, durable by fsync");
    app.add_option("--pmem-path", stores.pmem_path, "persistent memory of the store: a DAX device, or a file in one");
    app.add_flag("--allow-fake-pmem", stores.allow_fake_pmem,
                 "use an ordinary file as persistent memory, which survives no loss of power");
    add_size(app, "--capacity", "length of each store that is made", "a multiple of 2M from 16M on",
             [&stores](std::uint64_t bytes) {
                 stores.capacity_bytes = bytes;
                 return bytes >= 16U << 20U && bytes % (2U << 20U) == 0;
             });
    add_size(app, "--chunk-size", "chunks of a store that is made (1M)", "a power of two from 64K to 4M",
             [&stores](std::uint64_t bytes) {
                 stores.chunk_bytes = static_cast<std::uint32_t>(bytes);
                 return bytes <= fs::StoreShape::kMostChunkBytes && fs::StoreShape::is_valid(*stores.chunk_bytes);
             });
    app.add_option_function<std::string>(
           "--placement",
           [&stores](const std::string& word) {
               stores.spread = word == "even" ? fs::Spread::Even : fs::Spread::Koyama;
           },
           "how names of a file system that is made are spread over daemons: even, or koyama, as CHFS does (even)")
        ->check(CLI::IsMember({"even", "koyama"}));
    app.add_flag("--format", stores.format, "make new stores; what lies there is lost");
}

void add_clients(CLI::App& app, Options& options) {
    app.add_option("--shm-prefix", options.shm_prefix, "clients find the daemon at PREFIX.sock")->capture_default_str();
    app.add_option_function<std::string>(
           "--socket-mode",
           [&options](const std::string& text) {
               unsigned mode = 0;
               const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
               if (fault != std::errc{} || end != text.data() + text.size() || mode > 0777) {
                   throw CLI::ValidationError("--socket-mode", text + " is no mode such as 0660");
               }
               options.socket_mode = mode;
           },
           "permissions of that socket, octal: whoever may write to it is served (0666)")
        ->type_name("MODE");
    app.add_option("--max-clients", options.max_clients, "clients at a time")
        ->check(CLI::Range(1U, fs::SessionConfig::kMostClients))
        ->capture_default_str();
    app.add_option("--max-user-clients", options.max_user_clients,
                   "of them, those of any user but root and the daemon's own; 0: half")
        ->check(CLI::Range(0U, fs::SessionConfig::kMostClients))
        ->capture_default_str();
    app.add_option("--queue-depth", options.shape.slots, "calls of a client's thread that may be under way")
        ->check(CLI::Range(1U, fs::ChannelShape::kMostSlots))
        ->capture_default_str();
    add_size(app, "--extra-buffer-size", "room for data of each of these calls (2M)", "a multiple of 4K up to 64M",
             [&options](std::uint64_t bytes) {
                 options.shape.data_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
                 return options.shape.is_valid();
             });
    add_size(app, "--buffer-size", "memory that a client may have for buffers of its own (64M); 0: none",
             "a multiple of 4K up to 2G", [&options](std::uint64_t bytes) {
                 options.buffer_bytes = bytes;
                 return bytes % 4096 == 0 && bytes <= fs::BuffersRequest::kMost;
             });
}

void add_process(CLI::App& app, Options& options) {
    app.add_option("--daemons-per-node", options.stores.shards,
                   "shards of this process, each with a thread and a store of its own: PATH.0, PATH.1, ...")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    app.add_option("--nodes", options.nodes,
                   "addresses of all daemons of the file system, in the same order at each: ADDRESS,ADDRESS,...")
        ->delimiter(',')
        ->type_name("ADDRESSES");
    app.add_option_function<std::uint32_t>(
        "--node", [&options](const std::uint32_t& number) { options.node = number; },
        "which of them this daemon is, from 0 on; without it, the one that has its --port's address");
    app.add_option("--key-file", options.key_file,
                   "file with a secret of at least 16 bytes, the same for all daemons of the file system");
    app.add_option("--stats", options.stats_s, "print counters every so many seconds; 0: never")
        ->check(CLI::Range(0U, 86400U))
        ->capture_default_str();
    app::add_polling(app, options.spin);
    app::add_ports(app, options.ports);
    app.get_option("--port")->description("network port: eth:N or uring:ADDRESS; without it, and without EAL, none");
    app::add_pcap(app, options.ports.pcap);
}

// Returns the address of this daemon's port.
std::string own_address(const Options& options) {
    const std::string sockets = "uring:";
    return options.ports.port.starts_with(sockets) ? options.ports.port.substr(sockets.size()) : options.ports.ip;
}

Status judge_cluster(Options& options) {
    Result<fs::Cluster> cluster =
        fs::make_cluster(options.nodes, options.node, own_address(options), options.stores.shards);
    if (!cluster.ok()) {
        return cluster.error();
    }
    options.cluster = std::move(cluster).value();
    options.stores.nodes = options.cluster.node_count();
    options.stores.node = options.cluster.node;
    if (!options.cluster.is_alone() && !options.has_network()) {
        return Error{"--nodes names several daemons, and there is no network", "say --port uring:ADDRESS, or eth:N"};
    }
    if (!options.cluster.is_alone() && options.key_file.empty()) {
        return Error{"--nodes names several daemons, and they have no key in common",
                     "say --key-file, a file with the same secret for all of them: head -c 32 /dev/urandom"};
    }
    return Nothing{};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app(
        "cairn-fsd: serves a file system. Without --port, to programs of this machine; EAL arguments first, then --");
    Options options;
    options.ports.private_ip = app::kPrivateIp;
    options.has_eal = first > 1;
    std::string config;
    app.add_option("--config", config, "file with these arguments, in TOML; see config/fs.toml");
    add_store(app, options.stores);
    add_clients(app, options);
    add_process(app, options);
    Status parsed = app::parse_arguments(app, argc, argv, first);
    if (parsed.ok() && !config.empty()) {
        parsed = read_config(config, app);
    }
    if (!parsed.ok()) {
        return parsed.error();
    }
    if (!options.stores.data_path.empty() && !options.stores.pmem_path.empty()) {
        return Error{"--data-path and --pmem-path are given, and a store has one place", "leave one of them out"};
    }
    if (options.stores.allow_fake_pmem && options.stores.pmem_path.empty()) {
        return Error{"--allow-fake-pmem is for --pmem-path, which is not given", "leave it out"};
    }
    if (const Status judged = judge_cluster(options); !judged.ok()) {
        return judged.error();
    }
    if (options.max_user_clients == 0) {
        options.max_user_clients = (options.max_clients + 1) / 2;
    }
    app::note_given(app, options.ports);
    return options;
}

}  // namespace cairn::fsd
