// Directory: the names of a directory, from all shards.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/client/open_files.hpp"
#include "fs/client/outcome.hpp"
#include "fs/client/task.hpp"
#include "fs/client/view.hpp"

namespace cairn::fs {

class ClientThread;

struct DirectoryEntry {
    FileId id{};
    std::uint32_t mode = 0;    // the type's bits
    std::uint64_t cursor = 0;  // to go on after this entry
    std::string_view name{};   // a 0 follows it
};

// Lists a directory. One thread uses it at a time. "." and ".." are not among the names. A name that exists during the
// whole listing is listed once, also if its shard changes. Other names may come and go meanwhile.
class Directory {
public:
    // A cursor has the shard's number above that shard's own cursor, and fits an off_t. 0 is the beginning.
    static constexpr unsigned kShardCursorBits = 51;

    Directory(File& file, std::shared_ptr<const View> view) noexcept : file_(file), view_(std::move(view)) {}

    [[nodiscard]] File& file() const noexcept { return file_; }
    // Goes on after this entry. Names that share a hash with it may come again.
    void seek(std::uint64_t cursor) noexcept;
    // Returns where the listing goes on: after all names that were read.
    [[nodiscard]] std::uint64_t cursor() const noexcept { return cursor_of(shard_, place_); }

    // For read_directory(): these say which shard is asked next, and from which place on.
    [[nodiscard]] bool is_at_end() const noexcept { return shard_ >= view_->table().shards(); }
    [[nodiscard]] ShardNumber shard() const noexcept { return static_cast<ShardNumber>(shard_); }
    [[nodiscard]] std::uint64_t place() const noexcept { return place_; }
    // Takes the shard's answer. Returns 0, or EIO if the bytes are no such answer.
    [[nodiscard]] int take_page(std::span<const std::uint8_t> answer);
    // Returns the entries of the last page.
    [[nodiscard]] std::span<const DirectoryEntry> entries() const noexcept { return entries_; }

private:
    [[nodiscard]] static std::uint64_t cursor_of(std::uint64_t shard, std::uint64_t place) noexcept;
    [[nodiscard]] bool is_new(const ListedName& listed) const noexcept;
    void add(const ListedName& listed);
    void end_page(bool is_end, std::uint64_t place, std::vector<std::string> seen) noexcept;

    File& file_;
    std::shared_ptr<const View> view_;  // the view at the beginning
    std::uint32_t shard_ = 0;
    std::uint64_t place_ = 0;
    std::vector<std::string> seen_{};  // names that may come again at place_
    std::vector<DirectoryEntry> entries_{};
    std::string names_{};
};

Task<Outcome<std::unique_ptr<Directory>>> open_directory(ClientThread& thread, std::string_view path);
// Yields some more names, or none at the end. They are valid until the next call.
Task<Outcome<std::span<const DirectoryEntry>>> read_directory(ClientThread& thread, Directory& directory);

}  // namespace cairn::fs
