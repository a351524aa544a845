// The files that a client has open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"

namespace cairn::fs {

// The program's rights to a file, and the way it is written.
struct FileWays {
    std::uint32_t rights = 0;
    bool appends = false;
    bool is_relaxed = false;
};

// An open file. Any thread of the client may use it until it is closed.
struct File {
    File(const Attributes& attributes, const Grant& grant, const FileWays& ways) noexcept
        : id(attributes.id),
          mode(attributes.mode),
          rights(ways.rights),
          granted(grant.rights),
          appends(ways.appends),
          is_relaxed(ways.is_relaxed),
          proof(grant.proof),
          generation(attributes.generation),
          size(attributes.size) {}

    [[nodiscard]] Grant grant() const noexcept { return {granted, proof.load(std::memory_order_relaxed)}; }

    const FileId id;
    const std::uint32_t mode;     // at the time of open()
    const std::uint32_t rights;   // the program's
    const std::uint32_t granted;  // the client's: more than `rights` if the file was opened to truncate it
    const bool appends;
    const bool is_relaxed;  // its home learns late of writes to other shards
    std::atomic<std::uint64_t> proof;
    // The home's last word.
    std::atomic<std::uint64_t> generation;
    std::atomic<std::uint64_t> size;
    std::uint32_t place = 0;  // in OpenFiles
};

class OpenFiles {
public:
    // Adds a file, which stays until remove().
    [[nodiscard]] File& add(const Attributes& attributes, const Grant& grant, const FileWays& ways);
    void remove(const File& file) noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<File>> all() const;

private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<File>> files_;
    std::vector<std::uint32_t> free_;  // free places in files_
};

}  // namespace cairn::fs
