// Descriptors of a parent in a child of fork().
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lib/base/nowhere.hpp"

namespace cairn {
namespace {

bool leads_nowhere(int fd) {
    struct stat facts {};
    char octet = 0;
    errno = 0;
    return read(fd, &octet, 1) == 0 && write(fd, &octet, 1) < 0 && errno == EBADF && fstat(fd, &facts) == 0 &&
           S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3) && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

// Returns whether three descriptors are /dev/null afterwards, and were the last copies of their files.
bool replaces_three(bool is_full) {
    std::array<int, 2> first{};
    std::array<int, 2> second{};
    if (pipe(first.data()) != 0 || pipe(second.data()) != 0) {
        return false;
    }
    while (is_full && dup(0) >= 0) {
    }
    const int before = dup(0);
    close(before);
    {
        Nowhere nowhere;
        nowhere.replace(-1);
        for (const int fd : {first[1], second[0], first[1], second[1]}) {
            nowhere.replace(fd);
        }
    }
    char octet = 0;
    const bool hung_up = read(first[0], &octet, 1) == 0;
    const int after = dup(0);
    close(after);
    return hung_up && leads_nowhere(first[1]) && leads_nowhere(second[0]) && leads_nowhere(second[1]) &&
           before == after;
}

// Runs `judge` in a child, whose descriptors are its own.
void expect_in_child(bool (*judge)()) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(judge() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(NowhereTest, WhatIsReplacedLeadsNowhereAndItsNumberStaysTaken) {
    expect_in_child([] { return replaces_three(false); });
}

TEST(NowhereTest, ItIsSoWhereNoDescriptorIsLeft) {
    expect_in_child([] {
        const rlimit few{400, 400};
        return setrlimit(RLIMIT_NOFILE, &few) == 0 && replaces_three(true);
    });
}

TEST(NowhereTest, OneAboveTheLimitIsClosed) {
    expect_in_child([] {
        const int high = fcntl(0, F_DUPFD, 500);
        const rlimit few{400, 400};
        if (high < 0 || setrlimit(RLIMIT_NOFILE, &few) != 0) {
            return false;
        }
        Nowhere().replace(high);
        return fcntl(high, F_GETFD) < 0;
    });
}

}  // namespace
}  // namespace cairn
