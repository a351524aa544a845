#include "lib/ibverbs/complaints.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <functional>

#include "lib/ibverbs/uncancelled.hpp"
#include "lib/roce/qp/limits.hpp"

namespace cairn::ibverbs {

namespace {

using Line = std::array<char, 256>;
using WholeLine = std::array<char, 1024>;

struct Known {
    const char* name;
    std::uint64_t most;
    const char* attribute;  // of the device: the attribute that has the limit
};
constexpr auto kLimits = [] {
    std::array<Known, static_cast<std::size_t>(Limit::Count)> all{};
    const auto set = [&all](Limit limit, const Known& known) { all[static_cast<std::size_t>(limit)] = known; };
    set(Limit::SendRequests, {"max_send_wr", roce::kMaxQueueSlots, "max_qp_wr"});
    set(Limit::ReceiveRequests, {"max_recv_wr", roce::kMaxQueueSlots, "max_qp_wr"});
    set(Limit::SendPieces, {"max_send_sge", roce::kMaxSges, "max_sge"});
    set(Limit::ReceivePieces, {"max_recv_sge", roce::kMaxSges, "max_sge"});
    set(Limit::SharedRequests, {"a shared receive queue's max_wr", roce::kMaxQueueSlots, "max_srq_wr"});
    set(Limit::SharedPieces, {"a shared receive queue's max_sge", roce::kMaxSges, "max_srq_sge"});
    set(Limit::Completions, {"cqe", roce::kMaxCompletionSlots, "max_cqe"});
    set(Limit::Reads, {"max_rd_atomic", roce::kMaxRdAtomic, "max_qp_init_rd_atom"});
    set(Limit::AnsweredReads, {"max_dest_rd_atomic", roce::kMaxRdAtomic, "max_qp_rd_atom"});
    set(Limit::Regions, {"a number of memory regions and windows", roce::kMaxRegions, "max_mr"});
    set(Limit::MessageBytes, {"a message length", roce::kMaxMessageBytes, "max_msg_sz"});
    set(Limit::ReadBytes, {"a READ length", roce::max_read_bytes(256), "a path MTU above 256 allows more"});
    return all;
}();

// Returns true for the first report of this subject. The numbers of subjects are kept, not their text. So an object
// that finds no memory, a thread that holds any lock, and a child of fork() may call it.
[[nodiscard]] bool is_first(std::string_view subject) noexcept {
    static std::array<std::atomic<std::size_t>, kMostLines> told;
    const std::size_t number = std::max<std::size_t>(std::hash<std::string_view>()(subject), 1);
    for (std::atomic<std::size_t>& place : told) {
        std::size_t there = 0;
        if (place.compare_exchange_strong(there, number, std::memory_order_relaxed)) {
            return true;
        }
        if (there == number) {
            return false;
        }
    }
    return false;
}

// Returns whether a line fits into it at once. The calling thread may hold the lock of an adapter. It may not wait for
// a reader then, nor end by a signal because there is none.
[[nodiscard]] bool has_room(int fd) noexcept {
    pollfd looked{fd, POLLOUT, 0};
    return poll(&looked, 1, 0) == 1 && looked.revents == POLLOUT;
}

// Prints the line if it is the first of its subject. The lock of stdio is not taken: a thread may wait in it.
void tell_once(Speaker speaker, std::string_view subject, std::string_view line) noexcept {
    const NoCancellation whole;
    const int reason = errno;
    if (const int fd = fileno(stderr); has_room(fd) && is_first(subject)) {
        WholeLine text;
        const int wanted = std::snprintf(text.data(), text.size(), "%s (cairn): %.*s\n",
                                         speaker == Speaker::Verbs ? "libibverbs" : "librdmacm",
                                         static_cast<int>(line.size()), line.data());
        const std::size_t bytes = std::min(static_cast<std::size_t>(wanted), text.size() - 1);
        text[bytes - 1] = '\n';
        static_cast<void>(uncancelled::write(fd, text.data(), bytes));
    }
    errno = reason;
}

}  // namespace

void complain(Speaker speaker, std::string_view line) noexcept {
    tell_once(speaker, line, line);
}

void complain(Speaker speaker, const Error& refused) noexcept {
    try {
        complain(speaker, refused.text());
    } catch (...) {
        complain_of_memory();
    }
}

void complain_of_descriptors() noexcept {
    const int reason = errno;
    Line line;
    std::snprintf(line.data(), line.size(), "cannot make a descriptor: %s; raise the limit of open files (ulimit -n)",
                  std::strerror(reason));
    complain(Speaker::Verbs, line.data());
    errno = reason;
}

void complain_of_memory() noexcept {
    complain(Speaker::Verbs, "no memory; raise the limit of address space (ulimit -v), or free some");
}

void complain_of(Limit limit, std::uint64_t wanted) noexcept {
    const Known& known = kLimits[static_cast<std::size_t>(limit)];
    Line line;
    std::snprintf(line.data(), line.size(), "%s of %" PRIu64 " is refused; the device has %" PRIu64 " (%s)", known.name,
                  wanted, known.most, known.attribute);
    tell_once(Speaker::Verbs, known.name, line.data());
}

bool is_within(Limit limit, std::uint64_t wanted) noexcept {
    const bool within = wanted <= kLimits[static_cast<std::size_t>(limit)].most;
    if (!within) {
        complain_of(limit, wanted);
    }
    return within;
}

}  // namespace cairn::ibverbs
