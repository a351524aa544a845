#include "pmd_glue/eal.hpp"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_pdump.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace cairn::pmd {

namespace {

__extension__ using Wide = unsigned __int128;

// What EAL's error numbers mean to whoever typed the command.
const char* remedy_for(int error) noexcept {
    switch (error) {
        case EACCES:
        case EPERM:
            return "huge pages or devices need permission: add --no-huge -m 512 --no-pci";
        case ENOMEM:
            return "no huge pages are free: add --no-huge -m 512 or reserve some";
        case EALREADY:
        case EAGAIN:
        case EEXIST:
            return "another process holds this --file-prefix: choose another";
        case EINVAL:
            return "check the EAL arguments before \"--\"";
        case ENOENT:
        case ENODEV:
            return "check the --vdev and -a arguments";
        default:
            return "check the EAL arguments before \"--\" and the lines above";
    }
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
    const int consumed = rte_eal_init(static_cast<int>(arguments.size()) - 1, arguments.data());
    if (consumed < 0) {
        return Error{fmt::format("EAL does not start: {}", rte_strerror(rte_errno)), remedy_for(rte_errno)};
    }
    rte_pdump_init();  // for dpdk-dumpcap; refused without shared configuration (--no-shconf, --no-huge), then --pcap
    return Eal(consumed - (added ? 1 : 0));
}

Eal::~Eal() {
    if (consumed_ >= 0) {
        rte_pdump_uninit();
        rte_eal_cleanup();
    }
}

Clock::Clock() noexcept
    : ns_per_tick_32_(static_cast<std::uint64_t>((static_cast<Wide>(1'000'000'000) << 32U) / rte_get_tsc_hz())),
      start_(rte_rdtsc()) {}

Instant Clock::now() const noexcept {
    const std::uint64_t ticks = rte_rdtsc() - start_;
    return {static_cast<std::int64_t>((static_cast<Wide>(ticks) * ns_per_tick_32_) >> 32U)};
}

}  // namespace cairn::pmd
