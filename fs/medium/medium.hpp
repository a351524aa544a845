// Medium: one region of memory that persists. Layers above rely only on the promises of this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/result.hpp"

namespace cairn::fs {

// The step that makes a store durable.
enum class Granularity : std::uint8_t {
    Byte,       // none: the medium has it once other CPUs can see it, as they do after fence() (eADR)
    CacheLine,  // flush(), then fence()
    Page,       // sync()
    None,       // none: the content ends with the process
};

// The content of the memory after the machine or the process has ended.
//
// A range that was made durable is there as a whole. Anything may be there of later stores. Each line of kLineBytes is
// on its own, since a CPU writes a line back whenever it wants. Within a line, each word of kWordBytes is on its own.
// So only a store of one aligned word is there as a whole or not at all. A program that publishes data makes them
// durable first. Then it stores the one word that names them, and makes it durable. Without fence() between two stores,
// the later one may be there alone. In fake persistent memory and in files this holds when the machine ends. The death
// of the process alone loses nothing there.
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kWordBytes = 8;

// Threads: any number may store, flush() and copy_nt(); no two of them use the same line at a time. fence() covers what
// its own thread flushed and copied. sync() covers everything that any thread stored before it.
class Medium {
public:
    Medium(const Medium&) = delete;
    Medium& operator=(const Medium&) = delete;
    virtual ~Medium() = default;

    // Returns the memory. It is mapped and page-aligned, and stays where it is as long as the medium lives. The data
    // path never touches a page for the first time. A new medium reads as zeros.
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return memory_; }
    [[nodiscard]] Granularity granularity() const noexcept { return granularity_; }

    // Starts to write the lines of these bytes back to the medium, with their present content. If the granularity is
    // Byte or CacheLine, they are durable after the next fence() of this thread. The bytes lie within memory(). 0 bytes
    // are allowed.
    virtual void flush(const void* at, std::size_t bytes) noexcept = 0;
    // Returns once all that this thread flushed and copied is durable. All other threads see it before this thread's
    // later stores.
    virtual void fence() noexcept = 0;
    // Copies into memory(), past the caches where that pays, and counts as a flush() of the copied bytes. It does not
    // flush other bytes of their lines. A word may be copied in parts, so the word that publishes must be stored and
    // flushed. The two ranges do not overlap.
    virtual void copy_nt(void* to, const void* from, std::size_t bytes) noexcept = 0;

    // On Page, returns once everything is durable. It takes as long as a disk does, so no data path calls it. Otherwise
    // does nothing. Errors: the device refused or lost something. Then stores since the last sync() may be lost in
    // part, and a later sync() that succeeds does not bring them back. So the caller ends its service.
    virtual Status sync() noexcept = 0;

    // Returns a text for the line that a daemon prints at its start: how much, where, and what the memory survives.
    [[nodiscard]] virtual std::string describe() const = 0;

protected:
    Medium(std::span<std::uint8_t> memory, Granularity granularity) noexcept
        : memory_(memory), granularity_(granularity) {}

private:
    std::span<std::uint8_t> memory_;
    Granularity granularity_;
};

}  // namespace cairn::fs
