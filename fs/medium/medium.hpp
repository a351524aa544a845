// Medium: one region of memory that persists. The layers above know of persistence only what is said here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::fs {

// What makes a store durable.
enum class Granularity : std::uint8_t {
    Byte,       // nothing but time: the medium has it once other CPUs can see it, as they do behind fence() (eADR)
    CacheLine,  // flush(), then fence()
    Page,       // sync()
    None,       // nothing: the content ends with the process
};

// What a store consists of when the machine or the process ends.
//
// Of a range that was made durable, all is there. Of what was stored since, anything may be there: each line of
// kLineBytes by itself, since a CPU writes a line back whenever it wants, and of a line each word of kWordBytes by
// itself. So only a store of one aligned word is there as a whole or not at all, and a program that publishes makes the
// data durable first, then stores and makes durable the one word that names them. Without fence() between two stores,
// the later one may be there alone. In fake persistent memory and in files this is so when the machine ends. The death
// of the process alone loses nothing there.
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kWordBytes = 8;

// Threads: any number may store, flush() and copy_nt(), each a line of its own at a time. fence() is about what its own
// thread flushed and copied. sync() is about everything that was stored before it, by whichever thread.
class Medium {
public:
    Medium(const Medium&) = delete;
    Medium& operator=(const Medium&) = delete;
    virtual ~Medium() = default;

    // Is mapped and page-aligned; stays where it is as long as the medium lives. No page of it is touched for the first
    // time in the data path. A new medium reads as zeros.
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return memory_; }
    [[nodiscard]] Granularity granularity() const noexcept { return granularity_; }

    // Sends the lines that hold these bytes on their way to the medium, with what they hold now. They are durable after
    // the next fence() of this thread, where the granularity is Byte or CacheLine. The bytes lie within memory(). No
    // bytes are nothing to flush.
    virtual void flush(const void* at, std::size_t bytes) noexcept = 0;
    // Returns once all is durable that this thread flushed and copied. What it stores later is stored later for
    // everybody.
    virtual void fence() noexcept = 0;
    // Copies into memory(), past the caches where that pays, and is as good as a flush() of the bytes copied. Bytes
    // beside them in their lines are none of them. A word may be copied in parts: the word that publishes is stored and
    // flushed. The two ranges do not overlap.
    virtual void copy_nt(void* to, const void* from, std::size_t bytes) noexcept = 0;

    // Page: returns once everything is durable. It takes as long as a disk does, so no data path calls it. Others:
    // nothing is left to do. Errors: the device refused or lost something. What was stored since the last sync() may be
    // lost in part then, and a later sync() that succeeds does not bring it back. So the caller serves no more.
    virtual Status sync() noexcept = 0;

    // Returns a text for the line that a daemon says at its start: how much, where, and what it survives.
    [[nodiscard]] virtual std::string describe() const = 0;

protected:
    Medium(std::span<std::uint8_t> memory, Granularity granularity) noexcept
        : memory_(memory), granularity_(granularity) {}

private:
    std::span<std::uint8_t> memory_;
    Granularity granularity_;
};

}  // namespace cairn::fs
