// The file system's operations, as coroutines of a client's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/client/client_thread.hpp"
#include "fs/client/outcome.hpp"
#include "fs/client/task.hpp"

namespace cairn::fs {

// Follows a path; the result is walk.found(). Returns 0 or an errno.
Task<int> follow(ClientThread& thread, PathWalk& walk, std::string_view path, WalkWish wish, bool fresh);
// Finds what a path names, with its attributes from its home. If rights are wanted, opens it, unless it is a symbolic
// link.
Task<Outcome<Found>> find(ClientThread& thread, std::string_view path, WalkWish wish);

Task<Outcome<File*>> open_file(ClientThread& thread, std::string_view path, int flags, std::uint32_t mode);
Task<Outcome<>> close_file(ClientThread& thread, File& file);
Task<Outcome<Attributes>> stat_path(ClientThread& thread, std::string_view path, bool follows);
Task<Outcome<Attributes>> stat_file(ClientThread& thread, const FileId& file);
// Sends a file's late size to its home: see LateSizes. Yields 0 once the home knows all, or an errno.
Task<int> tell_late(ClientThread& thread, FileId file);
// Yields the home's attributes of a file, after the home has learnt of all that this client has written.
Task<Outcome<Attributes>> stat_open_file(ClientThread& thread, const File& file);
// Sets attributes of the file at a path, or of an open file.
Task<Outcome<Attributes>> set_attributes(ClientThread& thread, std::string_view path, SetAttributesRequest what,
                                         bool follows);
Task<Outcome<Attributes>> set_size(ClientThread& thread, File& file, std::uint64_t size);
// Sets the size of an open file under the client's grant, also if the program's own rights do not allow it.
Task<Outcome<Attributes>> set_granted_size(ClientThread& thread, File& file, std::uint64_t size);
Task<Outcome<StatFsAnswer>> stat_fs(ClientThread& thread);
Task<Outcome<StatFsAnswer>> stat_shard(ClientThread& thread, std::uint16_t shard);
Task<Outcome<>> sync_all(ClientThread& thread);
Task<Outcome<>> sync_file(ClientThread& thread, const File& file);
Task<Outcome<std::vector<std::uint8_t>>> ask_shard(ClientThread& thread, std::uint16_t shard, Request request);

Task<Outcome<std::uint64_t>> read_file(ClientThread& thread, File& file, std::span<std::uint8_t> to,
                                       std::int64_t offset);
Task<Outcome<std::uint64_t>> write_file(ClientThread& thread, File& file, std::span<const std::uint8_t> from,
                                        std::int64_t offset);

Task<Outcome<>> make_directory(ClientThread& thread, std::string_view path, std::uint32_t mode);
Task<Outcome<>> make_symlink(ClientThread& thread, std::string_view target, std::string_view path);
Task<Outcome<>> make_link(ClientThread& thread, std::string_view path, std::string_view new_path);
Task<Outcome<std::string>> read_symlink(ClientThread& thread, std::string_view path);
Task<Outcome<>> remove_name(ClientThread& thread, std::string_view path, bool is_directory);
Task<Outcome<>> rename_path(ClientThread& thread, std::string_view path, std::string_view new_path, bool no_replace);

}  // namespace cairn::fs
