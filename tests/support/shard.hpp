// A client in another process and its shard, a tenant that a doorbell wakes: their shared memory and their code.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>

#include "lib/worker/worker.hpp"
#include "tests/support/process.hpp"

namespace cairn::test {

// The memory that a client and a shard share.
struct Channel {
    DoorbellWord word;
    alignas(64) std::atomic<std::uint32_t> asked{0};
    alignas(64) std::atomic<std::uint32_t> answered{0};
    std::atomic<std::uint32_t> woke{0};  // doorbells that found the shard asleep
};

struct Unmap {
    void operator()(Channel* channel) const noexcept { munmap(channel, sizeof(Channel)); }
};

inline std::unique_ptr<Channel, Unmap> map_channel() {
    void* const memory = mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return std::unique_ptr<Channel, Unmap>(memory != MAP_FAILED ? new (memory) Channel : nullptr);
}

// A tenant that answers the requests in its channel.
struct Shard final : worker::Tenant {
    Shard(worker::Worker& worker, Channel& with)
        : channel(with), bell(worker.add_doorbell(with.word).value()), tenancy(worker.add(*this)) {}
    bool on_turn(Instant) noexcept override {
        const std::uint32_t asked = channel.asked.load(std::memory_order_acquire);
        const bool has_work = asked != channel.answered.load(std::memory_order_relaxed);
        channel.answered.store(asked, std::memory_order_release);
        return has_work;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override {
        if (last_look) {
            last_look();
        }
        return channel.asked.load(std::memory_order_acquire) != channel.answered.load(std::memory_order_relaxed)
                   ? Instant{}
                   : Instant::never();
    }

    Channel& channel;
    std::function<void()> last_look;  // runs after the worker has said that it sleeps, and before it does
    std::unique_ptr<worker::Doorbell> bell;
    worker::Tenancy tenancy;
};

inline bool ask(Channel& channel, int fd) noexcept {
    channel.asked.fetch_add(1, std::memory_order_release);
    const bool woke = ring(channel.word, fd);
    channel.woke.fetch_add(woke ? 1U : 0U, std::memory_order_relaxed);
    return woke;
}

inline void await_sleep(const Channel& channel) noexcept {
    while (channel.word.asleep.load(std::memory_order_relaxed) == 0) {
        sched_yield();
    }
}

}  // namespace cairn::test
