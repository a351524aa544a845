#include "lib/port/capture_thread.hpp"

#include <chrono>
#include <utility>

namespace cairn::port {

namespace {

constexpr auto kNap = std::chrono::milliseconds(1);
constexpr int kNapsToFlush = 100;
constexpr int kLastNaps = 1000;

}  // namespace

CaptureThread::CaptureThread(PcapWriter& writer, std::function<void()> drain)
    : writer_(writer), drain_(std::move(drain)), thread_([this] { run(); }) {}

CaptureThread::~CaptureThread() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
}

// mutants: port-capture-thread-run
void CaptureThread::run() {
    for (int naps = 1; !stop_.load(std::memory_order_relaxed); ++naps) {
        drain_();
        if (naps % kNapsToFlush == 0) {
            writer_.flush();
        }
        std::this_thread::sleep_for(kNap);
    }
    drain_();
    for (int naps = 0; !writer_.flush() && naps < kLastNaps; ++naps) {
        std::this_thread::sleep_for(kNap);
    }
}

}  // namespace cairn::port
