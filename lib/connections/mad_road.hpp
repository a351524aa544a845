// How messages of queue pair 1 leave: by a worker's own sender, or by whoever owns queue pair 1 for this process.
#pragma once

#include <cstdint>

#include "lib/cm/types.hpp"
#include "lib/port/port.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::connections {

class MadRoad {
public:
    MadRoad() = default;
    MadRoad(const MadRoad&) = delete;
    MadRoad& operator=(const MadRoad&) = delete;
    virtual ~MadRoad() = default;

    // `path` leads to the message's destination. One that finds no buffer is lost, and sent again as any other.
    virtual void send(const cm::OutMad& mad, port::Path& path, Instant now) = 0;
};

// Datagrams of queue pair 1 that any worker of the address may send: they carry its number, whoever owns it.
class WorkerRoad final : public MadRoad {
public:
    // The worker outlives it.
    explicit WorkerRoad(worker::Worker& worker) noexcept : sender_(worker.sender()) {}
    void send(const cm::OutMad& mad, port::Path& path, Instant now) override;

private:
    roce::Sender& sender_;
    Psn psn_{};
};

}  // namespace cairn::connections
