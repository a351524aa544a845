// LateSender: a thread that sends late sizes to the homes of files, while the client's other threads work.
#pragma once

#include <memory>
#include <thread>

#include "fs/client/client_threads.hpp"

namespace cairn::fs {

class LateSender {
public:
    explicit LateSender(std::shared_ptr<ClientThreads> threads);
    // Ends the thread. Nothing more is sent.
    ~LateSender();
    LateSender(const LateSender&) = delete;
    LateSender& operator=(const LateSender&) = delete;

private:
    std::shared_ptr<ClientThreads> threads_;
    std::thread thread_;
};

// Sends late sizes of these files to their homes, all at once, and waits for the answers. No completion runs
// (asserted).
void tell_all_late(ClientThread& thread, const std::vector<FileId>& files) noexcept;

}  // namespace cairn::fs
