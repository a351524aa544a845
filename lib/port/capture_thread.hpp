// The thread that writes a capture file. So a slow file delays no thread that records.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "lib/port/pcap_writer.hpp"

namespace cairn::port {

class CaptureThread {
public:
    // Calls `drain` every millisecond. `drain` adds the new frames to `writer`. The thread flushes `writer` ten times a
    // second. `drain` and `writer` are used until the thread is destroyed.
    CaptureThread(PcapWriter& writer, std::function<void()> drain);
    CaptureThread(const CaptureThread&) = delete;
    CaptureThread& operator=(const CaptureThread&) = delete;
    // Drains once more and writes the rest. Frames that the file does not take within a second are lost.
    ~CaptureThread();

private:
    void run();

    PcapWriter& writer_;
    std::function<void()> drain_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace cairn::port
