#include "pmd_glue/eal.hpp"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_pdump.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmd_glue/control_thread.hpp"
#include "pmd_glue/eal_arguments.hpp"
#include "pmd_glue/leftovers.hpp"
#include "pmd_glue/overheard.hpp"

namespace cairn::pmd {

namespace {

__extension__ using Wide = __int128;

std::vector<std::uint32_t> cpus_at_start;

// Removes the file of a dead memif server, which keeps the next one from listening. Our own file is removed when this
// process ends.
Status check_memif_sockets(std::span<char* const> arguments) {
    for (const std::string& vdev : vdev_arguments(arguments)) {
        const std::optional<std::string> path = memif_listening_file(vdev);
        sockaddr_un address{};
        if (!path.has_value() || path->size() >= sizeof(address.sun_path)) {
            continue;
        }
        if (access(path->c_str(), F_OK) != 0) {
            remember_leftover(*path);
            continue;
        }
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path->c_str(), path->size() + 1);
        const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        const bool alive = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
        close(probe);
        return Error{fmt::format("the memif socket {} exists already", *path),
                     alive ? "another process serves there: choose another socket="
                           : fmt::format("its process is gone: rm {}", *path)};
    }
    return Nothing{};
}

bool names_log_level(int argc, char** argv) noexcept {
    for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
        if (std::string_view(argv[i]).starts_with("--log-level")) {
            return true;
        }
    }
    return false;
}

}  // namespace

Result<Eal> Eal::start(int argc, char** argv) {
    std::vector<char*> arguments(argv, argv + argc);
    char quiet[] = "--log-level=warning";
    const bool added = argc > 0 && !names_log_level(argc, argv);
    if (added) {
        arguments.insert(arguments.begin() + 1, quiet);
    }
    arguments.push_back(nullptr);
    const Status sockets = check_memif_sockets({argv, static_cast<std::size_t>(argc)});
    if (!sockets.ok()) {
        return sockets.error();
    }
    cpus_at_start = allowed_cpus();
    Overheard overheard;
    const int consumed = rte_eal_init(static_cast<int>(arguments.size()) - 1, arguments.data());
    const std::string said = overheard.finish();
    if (consumed < 0) {
        return explain_eal_failure(said);
    }
    std::fputs(said.c_str(), stderr);
    rte_pdump_init();  // for dpdk-dumpcap; --no-shconf and --no-huge refuse it, and --pcap is left
    return Eal(consumed - (added ? 1 : 0));
}

Eal::~Eal() {
    if (consumed_ >= 0) {
        rte_pdump_uninit();
        park_control_thread();
        rte_eal_cleanup();
    }
}

std::vector<std::uint32_t> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    std::vector<std::uint32_t> cpus;
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            cpus.push_back(cpu);
        }
    }
    return cpus;
}

const std::vector<std::uint32_t>& cpus_before_eal() noexcept {
    return cpus_at_start;
}

mem::PageKind eal_pages() noexcept {
    return rte_eal_has_hugepages() != 0 ? mem::PageKind::Huge : mem::PageKind::Plain;
}

Clock::Clock() noexcept
    : ns_per_tick_32_(static_cast<std::int64_t>((static_cast<Wide>(1'000'000'000) << 32) / rte_get_tsc_hz())),
      start_(rte_rdtsc()) {}

void keep_busy(Duration span) noexcept {
    const std::uint64_t start = rte_rdtsc();
    const auto ticks = static_cast<std::uint64_t>(static_cast<Wide>(span.ns) * rte_get_tsc_hz() / 1'000'000'000);
    while (rte_rdtsc() - start < ticks) {  // without a pause, which may take 50 ns
    }
}

Instant Clock::now() const noexcept {
    const auto ticks = static_cast<std::int64_t>(rte_rdtsc() - start_);  // negative: it went back, or is another CPU's
    return {static_cast<std::int64_t>((static_cast<Wide>(ticks) * ns_per_tick_32_) >> 32)};
}

}  // namespace cairn::pmd
