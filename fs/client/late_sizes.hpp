// LateSizes: sizes of files that their homes do not know yet.
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

// The late size of a file, from a relaxed client's writes. Writes to chunks at the file's home do not count: the home
// knows them.
// them.
struct LateSize {
    FileId file{};
    Grant grant{};                 // of the last writer
    std::uint64_t end = 0;         // one past the last byte that was written
    std::uint64_t generation = 0;  // as the last writer knew it
    Instant since{};               // time of the first of these writes, or of the last try to send the size
};

// The late sizes of a client. Any thread may use it. A thread that sends a size to a home calls begin() and end(), so
// that no other thread does so at the same time.
class LateSizes {
public:
    // A size is sent this long after the first write that its home does not know, unless it is sent earlier.
    static constexpr Duration kMost = seconds(1);

    enum class Begun : std::uint8_t {
        Nothing,  // the home knows all
        Mine,     // the caller sends it to the home, and calls end()
        Another,  // another thread sends it now
    };

    // Adds a write that has ended: all its bytes are in the chunks.
    void add(const LateSize& more);
    // Returns false if all sizes are sent that the calling thread has added.
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

    [[nodiscard]] bool has(const FileId& file) const;

    // Begins to send a file's size. If it returns Mine, `size` is what the caller sends.
    [[nodiscard]] Begun begin(const FileId& file, LateSize& size);
    // Notes that the home knows the size, or will never know it.
    void end(const FileId& file);
    // Notes that the home does not know the size. It is to be sent again later; the delay counts from `now`.
    void put_back(const FileId& file, Instant now);

    [[nodiscard]] std::vector<FileId> all() const;
    // Sleeps until sizes are due, or stop() was called. Returns their files; none after stop().
    [[nodiscard]] std::vector<FileId> wait_due();
    void stop();

    // Returns the files whose sizes are due at `now`.
    [[nodiscard]] std::vector<FileId> due(Instant now) const;

private:
    struct Entry {
        LateSize size{};
        bool is_told = false;   // a thread sends it now
        bool has_more = false;  // writes ended meanwhile
    };
    // Needs the lock.
    [[nodiscard]] std::vector<FileId> due_by(Instant now) const;
    [[nodiscard]] Instant next_due() const;

    mutable std::mutex mutex_;  // guards the members below
    std::condition_variable changed_;
    std::map<FileId, Entry> entries_;
    bool stops_ = false;
    std::atomic<std::uint32_t> count_{0};  // number of entries
};

}  // namespace cairn::fs
