// cairn-fsd: [EAL arguments --] own arguments. Serves a file system to programs of this machine.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <thread>

#include "apps/common/app.hpp"
#include "apps/common/ports.hpp"
#include "apps/fsd/daemon.hpp"
#include "apps/fsd/local_run.hpp"
#include "pmd_glue/lcores.hpp"

namespace {

using namespace cairn;

constexpr const char* kName = "cairn-fsd";

// The sessions' thread. It ends with this object.
class ClientThread {
public:
    ClientThread(fsd::Daemon& daemon, int stop_fd)
        : stop_fd_(stop_fd), thread_([&daemon, stop_fd] { daemon.serve_clients(stop_fd); }) {}
    ClientThread(const ClientThread&) = delete;
    ClientThread& operator=(const ClientThread&) = delete;
    ~ClientThread() {
        eventfd_write(stop_fd_, 1);
        thread_.join();
    }

private:
    int stop_fd_;
    std::thread thread_;
};

// Runs a daemon with a network: a shard on each of EAL's lcores.
Result<int> run_on_lcores(const fsd::Options& options) {
    app::PortOptions wishes = options.ports;
    wishes.workers = static_cast<std::uint16_t>(options.stores.shards);
    if (pmd::worker_count() < wishes.workers) {
        return Error{fmt::format("--daemons-per-node {} needs as many lcores, and EAL has {}", wishes.workers,
                                 pmd::worker_count()),
                     "give EAL more of them: -l 0,1 --"};
    }
    Result<app::Ports> ports = app::Ports::open(wishes);
    if (!ports.ok()) {
        return ports.error();
    }
    const OwnedFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    auto opened = fsd::Daemon::open(options);
    if (!opened.ok()) {
        return opened.error();
    }
    fsd::Daemon& daemon = *opened.value();
    const pmd::Clock clock;
    for (std::uint16_t i = 0; i != wishes.workers; ++i) {
        auto port = ports.value().make_port(i);
        if (!port.ok()) {
            return port.error();
        }
        const Status added = daemon.add_shard(std::move(port).value(), worker::Task::kLongestWait, clock.now());
        if (!added.ok()) {
            return added.error();
        }
    }
    {
        const ClientThread clients(daemon, stop.get());
        pmd::run_workers(daemon.tasks(), clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    }
    const Status done = daemon.finish(clock.now());
    return done.ok() ? Result<int>(0) : done.error();
}

// Raises the limit of descriptors. A channel takes two: many clients need more than a shell gives by default.
void raise_descriptor_limit() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int run(int argc, char** argv) {
    const std::span arguments(argv, static_cast<std::size_t>(argc));
    const auto dashes = std::ranges::find_if(arguments, [](std::string_view argument) { return argument == "--"; });
    const bool has_eal = dashes != arguments.end();
    Result<fsd::Options> options = Error{};
    const int status = app::exit_status(kName, [&]() -> Result<int> {
        options = fsd::parse_options(argc, argv, has_eal ? static_cast<int>(dashes - arguments.begin()) + 1 : 1);
        return options.ok() ? Result<int>(0) : options.error();
    });
    if (status != 0) {
        return status;
    }
    raise_descriptor_limit();
    if (options.value().has_network()) {
        const auto program = [&options](int, char**, int) { return run_on_lcores(options.value()); };
        return app::run(kName, argc, argv, program, options.value().stores.shards);
    }
    return app::exit_status(kName, [&options]() -> Result<int> {
        const app::PortOptions& ports = options.value().ports;
        const std::string& idle = ports.for_ethernet.empty() ? ports.for_sockets : ports.for_ethernet;
        if (!idle.empty()) {
            return Error{idle + " is for a port, and none is given", "give --port too, or leave it out"};
        }
        return fsd::run_locally(options.value());
    });
}

}  // namespace

int main(int argc, char** argv) {
    return run(argc, argv);
}
