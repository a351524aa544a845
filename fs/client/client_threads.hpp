// ClientThreads: a client's threads. Each one finds its own part without asking the others.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fs/client/client_thread.hpp"

namespace cairn::fs {

class ClientThreads : public std::enable_shared_from_this<ClientThreads> {
public:
    // Connects to the daemon. Errors: see Connection.
    static Result<std::shared_ptr<ClientThreads>> connect(std::string socket, Duration timeout);

    [[nodiscard]] ClientCommon& common() noexcept { return common_; }
    // Returns the calling thread's part. When the thread ends, another thread gets that part.
    [[nodiscard]] ClientThread& mine();
    void give_back(ClientThread& thread);

private:
    ClientThreads() = default;
    [[nodiscard]] ClientThread& take();

    ClientCommon common_;
    std::uint64_t number_ = 0;  // of the client in this process
    std::mutex mutex_;          // guards the members below
    std::vector<std::unique_ptr<ClientThread>> all_;
    std::vector<ClientThread*> free_;
};

}  // namespace cairn::fs
