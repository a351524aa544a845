// How messages of queue pair 1 leave: by a worker's own sender, or by another owner of queue pair 1.
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

    // Sends a message. `path` leads to its destination. A message that finds no buffer is lost, and the manager sends
    // it again like any lost message.
    virtual void send(const cm::OutMad& mad, port::Path& path, Instant now) = 0;
};

// Sends datagrams of queue pair 1 from any worker of the address. They carry the number 1 whichever worker owns queue
// pair 1.
class WorkerRoad final : public MadRoad {
public:
    // Sends by the worker's own sender. The worker outlives this object.
    explicit WorkerRoad(worker::Worker& worker) noexcept : sender_(worker.sender()) {}
    void send(const cm::OutMad& mad, port::Path& path, Instant now) override;

private:
    roce::Sender& sender_;
    Psn psn_{};
};

}  // namespace cairn::connections
