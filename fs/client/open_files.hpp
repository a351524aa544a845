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

// What a program may do with a file, and how it is written.
struct FileWays {
    std::uint32_t rights = 0;
    bool appends = false;
    bool is_relaxed = false;
};

// Any thread of the client may use it until it is closed.
struct File {
    // mutants: fs-client-rights
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
    const std::uint32_t mode;     // as it was when it was opened
    const std::uint32_t rights;   // of the program
    const std::uint32_t granted;  // of the client: who opens to truncate gets more
    const bool appends;
    const bool is_relaxed;  // its home is told of writes elsewhere later
    std::atomic<std::uint64_t> proof;
    // As the home said last.
    std::atomic<std::uint64_t> generation;
    std::atomic<std::uint64_t> size;
    std::uint32_t place = 0;  // in OpenFiles
};

class OpenFiles {
public:
    // The file stays until remove().
    [[nodiscard]] File& add(const Attributes& attributes, const Grant& grant, const FileWays& ways);
    void remove(const File& file) noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<File>> all() const;

private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<File>> files_;
    std::vector<std::uint32_t> free_;  // places in files_
};

}  // namespace cairn::fs
