// LateSender: a thread that tells homes of files what is due, while the client's other threads do something else.
#pragma once

#include <memory>
#include <thread>

#include "fs/client/client_threads.hpp"

namespace cairn::fs {

class LateSender {
public:
    explicit LateSender(std::shared_ptr<ClientThreads> threads);
    // Tells nobody any more.
    ~LateSender();
    LateSender(const LateSender&) = delete;
    LateSender& operator=(const LateSender&) = delete;

private:
    std::shared_ptr<ClientThreads> threads_;
    std::thread thread_;
};

// Tells homes of these files, all at once, and waits until they have answered. No completion runs (asserted).
void tell_all_late(ClientThread& thread, const std::vector<FileId>& files) noexcept;

}  // namespace cairn::fs
