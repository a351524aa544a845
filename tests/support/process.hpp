// Another process of a test.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace cairn::test {

// Runs `what` in another process, which ends at the latest with the test. The process runs no more of the test.
class Process {
public:
    template <class What>
    explicit Process(const What& what) : id_(fork()) {
        if (id_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            what();
            _exit(0);
        }
    }
    ~Process() {
        if (id_ > 0) {
            kill(id_, SIGKILL);
            wait();
        }
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    bool wait() noexcept {
        int status = 0;
        return id_ > 0 && waitpid(std::exchange(id_, -1), &status, 0) > 0 && status == 0;
    }

private:
    pid_t id_;
};

}  // namespace cairn::test
