// LateSizes: sizes of files that their homes have not been told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "fs/message/requests.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// What a relaxed client's writes have made of a file, the chunks at its home left out: those tell it themselves.
struct LateSize {
    FileId file{};
    Grant grant{};                 // of the last writer
    std::uint64_t end = 0;         // behind the last byte that was written
    std::uint64_t generation = 0;  // as the last writer knew it
    Instant since{};               // the first of these writes; or of the last try to tell of them
};

// Of a client. Any thread may use it; who tells a home says so before and afterwards, so that nobody else does
// meanwhile.
class LateSizes {
public:
    // A home is told this long after the first write that it does not know of, if nothing else makes it be told.
    static constexpr Duration kMost = seconds(1);

    enum class Begun : std::uint8_t {
        Nothing,  // the home knows all
        Mine,     // the caller tells the home, and calls end()
        Another,  // somebody tells it just now
    };

    // A write has ended: all its bytes are there.
    void add(const LateSize& more);
    // False if there is none for sure: all that the calling thread has added was told.
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    [[nodiscard]] bool has(const FileId& file) const;

    // Mine: `size` is what is to be told.
    [[nodiscard]] Begun begin(const FileId& file, LateSize& size);
    // The home knows, or will not know any more.
    void end(const FileId& file);
    // The home was not told: it is to be, this time later.
    void put_back(const FileId& file, Instant now);

    [[nodiscard]] std::vector<FileId> all() const;
    // Sleeps until homes are to be told, or stop() was called. Returns whose homes; none after stop().
    [[nodiscard]] std::vector<FileId> wait_due();
    void stop();

    // Whose homes are to be told by now.
    [[nodiscard]] std::vector<FileId> due(Instant now) const;

private:
    struct Entry {
        LateSize size{};
        bool is_told = false;   // just now
        bool has_more = false;  // came meanwhile
    };
    // The lock is held.
    [[nodiscard]] std::vector<FileId> due_by(Instant now) const;
    [[nodiscard]] Instant next_due() const;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::map<FileId, Entry> entries_;
    bool stops_ = false;
    std::atomic<std::uint32_t> count_{0};  // entries
};

}  // namespace cairn::fs
