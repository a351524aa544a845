#include "fs/client/late_sender.hpp"

#include "fs/client/operations.hpp"
#include "lib/base/assert.hpp"
#include "lib/base/blocked_signals.hpp"

namespace cairn::fs {

namespace {

void run(ClientThreads& threads) {
    for (;;) {
        const std::vector<FileId> files = threads.common().late.wait_due();
        if (files.empty()) {
            return;
        }
        tell_all_late(threads.mine(), files);
    }
}

}  // namespace

// Blocks all signals in the new thread: they are for the program's own threads.
LateSender::LateSender(std::shared_ptr<ClientThreads> threads) : threads_(std::move(threads)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { run(*threads_); });
}

LateSender::~LateSender() {
    threads_->common().late.stop();
    thread_.join();
}

void tell_all_late(ClientThread& thread, const std::vector<FileId>& files) noexcept {
    CAIRN_ASSERT(!thread.road().is_polling());
    std::size_t left = files.size();
    for (const FileId& file : files) {
        tell_late(thread, file)
            .start([](void* context, int /*error*/) { --*static_cast<std::size_t*>(context); }, &left);
    }
    while (left != 0) {
        thread.road().wait();
    }
}

}  // namespace cairn::fs
