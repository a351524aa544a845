#include "pmd_glue/overheard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace cairn::pmd {

namespace {

// State that a signal handler needs.
int file = -1;  // file of the captured output; -1: no output is captured
int out = -1;   // the true stdout and stderr
int err = -1;

void restore() noexcept {
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
}

template <class Take>
void each_piece(Take take) {
    std::array<char, 4096> piece;
    ssize_t got = 0;
    for (off_t at = 0; (got = pread(file, piece.data(), piece.size(), at)) > 0; at += got) {
        take(piece.data(), static_cast<std::size_t>(got));
    }
}

// Passes the output on. Async-signal-safe.
void pass_on(int to) noexcept {
    if (file >= 0) {
        restore();
        each_piece([to](const char* text, std::size_t bytes) { return write(to, text, bytes) < 0; });
        file = -1;
    }
}

void on_exit() {
    if (file >= 0) {
        std::fflush(nullptr);
        pass_on(STDOUT_FILENO);
    }
}

extern "C" void on_abort(int signal) {
    pass_on(STDERR_FILENO);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

}  // namespace

Overheard::Overheard() {
    static const bool watched = std::atexit(on_exit) == 0;
    std::fflush(nullptr);
    const int made = watched ? memfd_create("cairn_eal_output", MFD_CLOEXEC) : -1;
    if (made >= 0) {
        out = dup(STDOUT_FILENO);
        err = dup(STDERR_FILENO);
        file = made;
        dup2(file, STDOUT_FILENO);
        dup2(file, STDERR_FILENO);
        std::signal(SIGABRT, on_abort);
    }
}

std::string Overheard::finish() {
    std::string text;
    if (file >= 0) {
        std::fflush(nullptr);
        restore();
        each_piece([&text](const char* piece, std::size_t bytes) { text.append(piece, bytes); });
        for (const int each : {file, out, err}) {
            close(each);
        }
        file = -1;
        std::signal(SIGABRT, SIG_DFL);
    }
    return text;
}

}  // namespace cairn::pmd
