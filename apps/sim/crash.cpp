#include "apps/sim/crash.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "apps/sim/report.hpp"

namespace cairn::simulate {

namespace {

constexpr unsigned kReportSeconds = 10;  // the crash may have left the allocator locked

struct Slot {
    std::atomic<bool> taken{false};
    std::atomic<std::uint64_t> seed{0};
    std::atomic<const Options*> options{nullptr};
    const History* world = nullptr;  // its thread's alone
};

std::array<Slot, kMaxUnderWay> slots;
thread_local Slot* own = nullptr;

void say_seed(const Slot& slot, const char* what) noexcept {
    std::array<char, 256> line;
    const std::uint64_t seed = slot.seed.load(std::memory_order_relaxed);
    char* end = fmt::format_to_n(line.data(), line.size(), "seed {}: {}\n  replay: ", seed, what).out;
    const auto room = [&] { return static_cast<std::size_t>(line.data() + line.size() - end); };
    end = fmt::format_to_n(end, room(), kReplay, seed, slot.options.load(std::memory_order_relaxed)->replay_arguments())
              .out;
    end = fmt::format_to_n(end, room(), "\n").out;
    (void)!write(STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data()));
}

void on_crash(int signal) {
    std::signal(signal, SIG_DFL);  // a crash in here ends it, and so does its end
    alarm(kReportSeconds);
    if (own != nullptr) {
        say_seed(*own, "the program failed in this history");
        if (own->world != nullptr) {
            const std::uint64_t seed = own->seed.load(std::memory_order_relaxed);
            fmt::print(stderr, "  {}\n  {}\n", own->world->text(), write_frames(*own->world, frames_file(seed)));
        }
    } else {
        for (const Slot& slot : slots) {
            if (slot.taken.load(std::memory_order_acquire)) {
                say_seed(slot, "under way when the program failed");
            }
        }
    }
    std::raise(signal);
}

}  // namespace

UnderWay::UnderWay(std::uint64_t seed, const Options& options) noexcept {
    CAIRN_ASSERT(own == nullptr);
    for (Slot& slot : slots) {
        if (!slot.taken.exchange(true, std::memory_order_acquire)) {
            slot.seed.store(seed, std::memory_order_relaxed);
            slot.options.store(&options, std::memory_order_relaxed);
            own = &slot;
            return;
        }
    }
    CAIRN_ASSERT(false && "more histories under way than there are slots");
}

UnderWay::~UnderWay() {
    Slot& slot = *own;
    own = nullptr;
    slot.world = nullptr;
    slot.taken.store(false, std::memory_order_release);
}

void UnderWay::set_world(const History* world) noexcept {
    own->world = world;
}

void report_crashes() noexcept {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
        std::signal(signal, on_crash);
    }
}

}  // namespace cairn::simulate
