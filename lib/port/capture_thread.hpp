// The thread beside a capture that does the writing: a file that takes its time costs nobody else any.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "lib/port/pcap_writer.hpp"

namespace cairn::port {

class CaptureThread {
public:
    // Calls `drain` every millisecond, which adds to `writer` what came since, and lets that write ten times a second.
    // Both outlive it.
    CaptureThread(PcapWriter& writer, std::function<void()> drain);
    CaptureThread(const CaptureThread&) = delete;
    CaptureThread& operator=(const CaptureThread&) = delete;
    // Drains and writes the rest; what a file does not take within a second is lost.
    ~CaptureThread();

private:
    void run();

    PcapWriter& writer_;
    std::function<void()> drain_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace cairn::port
