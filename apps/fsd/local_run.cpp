#include "apps/fsd/local_run.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "apps/fsd/daemon.hpp"
#include "fs/daemon/no_port.hpp"

namespace cairn::fsd {

namespace {

constexpr Duration kLongestSleep = milliseconds(900);  // below SteadyTime::kStepMost

// The host of a shard's thread: it has the system's clock.
struct Host {
    [[nodiscard]] static Instant read_clock() noexcept {
        return {std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()};
    }
    void pass() noexcept {}
};

// The threads of the shards. They end with this object.
class Threads {
public:
    Threads(Daemon& daemon, worker::Polling polling) : daemon_(daemon), group_{stop_, daemon.tasks().size(), polling} {
        for (worker::Task* const task : daemon.tasks()) {
            threads_.emplace_back([this, task] {
                Host host;
                (void)worker::run_loop(*task, group_, host);
            });
            pthread_setname_np(threads_.back().native_handle(), fmt::format("shard-{}", threads_.size() - 1).c_str());
        }
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() {
        stop_.store(true);
        daemon_.wake();
        for (std::thread& each : threads_) {
            each.join();
        }
    }

private:
    Daemon& daemon_;
    std::atomic<bool> stop_{false};
    worker::LoopGroup group_;
    std::vector<std::thread> threads_;
};

// Blocks the signals, for all threads that begin later too. Returns a descriptor that is readable once one has come.
OwnedFd hold_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return OwnedFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

Result<int> run_locally(const Options& options) {
    const OwnedFd stop = hold_signals();
    if (!stop.is_open()) {
        return Error{"no descriptor is left", "raise the limit of open files (ulimit -n)"};
    }
    auto opened = Daemon::open(options);
    if (!opened.ok()) {
        return opened.error();
    }
    Daemon& daemon = *opened.value();
    for (std::uint32_t i = 0; i != options.stores.shards; ++i) {
        if (const Status added = daemon.add_shard(std::make_unique<fs::NoPort>(), kLongestSleep, Host::read_clock());
            !added.ok()) {
            return added.error();
        }
    }
    {
        const Threads threads(daemon, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
        daemon.serve_clients(stop.get());
    }
    const Status done = daemon.finish(Host::read_clock());
    return done.ok() ? Result<int>(0) : done.error();
}

}  // namespace cairn::fsd
