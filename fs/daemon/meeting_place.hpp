// MeetingPlace: the socket at which clients of this machine find the daemon. One daemon at a time has it.
#pragma once

#include <sys/types.h>

#include <string>

#include "lib/base/owned_fd.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// A listening socket PREFIX.sock, and the lock PREFIX.lock (flock), which has the daemon's process number in it. A
// socket that a dead daemon left is replaced. The socket's file is removed when the object ends. The lock's file stays:
// a daemon that removed it could remove another daemon's lock.
class MeetingPlace {
public:
    // Opens the place. Errors: another daemon has it; no folder, or no right to write there; a path that no socket can
    // have.
    static Result<MeetingPlace> open(const std::string& prefix, mode_t mode);
    MeetingPlace(MeetingPlace&&) noexcept = default;
    MeetingPlace& operator=(MeetingPlace&&) = delete;
    ~MeetingPlace();

    // Returns the listening socket. Accepting from it never waits.
    [[nodiscard]] int listening_fd() const noexcept { return socket_.get(); }
    [[nodiscard]] const std::string& socket_path() const noexcept { return socket_path_; }

private:
    explicit MeetingPlace(const std::string& prefix) : lock_path_(prefix + ".lock"), socket_path_(prefix + ".sock") {}

    Status lock();
    Status listen(mode_t mode);

    std::string lock_path_;
    std::string socket_path_;
    OwnedFd lock_;
    OwnedFd socket_;
};

}  // namespace cairn::fs
