// What a client asks of a shard, a struct for each operation. See README.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "fs/message/fields.hpp"

namespace cairn::fs {

// What a client may do with a file that it has opened: kMayRead, kMayWrite. A shard that opens a file for a client
// proves it to all shards; nobody else can make the proof, and it is of no use to another client.
struct Grant {
    std::uint32_t rights = 0;
    std::uint64_t proof = 0;

    friend bool operator==(const Grant&, const Grant&) noexcept = default;
};

// Looks a name up. With rights, opens the file too if its home is this shard.
struct WalkRequest {
    FileId directory{};
    std::uint32_t rights = 0;
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.directory, self.rights, self.name); }
};

// Makes a file, a directory or a symbolic link. With rights, opens it. If the name is there already, this is a
// WalkRequest, unless it is exclusive.
struct CreateRequest {
    FileId directory{};
    std::uint32_t mode = 0;  // type and permissions, without the umask's
    std::uint32_t rights = 0;
    bool exclusive = true;
    std::string_view name{};
    std::string_view target{};  // of a symbolic link
    static void fields(auto& io, auto& self) {
        io(self.directory, self.mode, self.rights, self.exclusive, self.name, self.target);
    }
};

struct StatRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};

// Who had the file open when its home ended shows the proof that he had for these rights, or 0: what he may do was
// judged then, and is not judged anew.
struct OpenRequest {
    FileId file{};
    std::uint32_t rights = 0;
    std::uint64_t proof = 0;
    static void fields(auto& io, auto& self) { io(self.file, self.rights, self.proof); }
};

// One open() less.
struct CloseRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};

// Where a request's data lie: `at` counts from the first byte of the channel's data areas; from here on it counts from
// the first byte of the client's buffers (see hello.hpp). Data lie in one of them.
constexpr std::uint32_t kBuffersAt = 1U << 31U;

// Bytes of one chunk. They go to `at`.
struct ReadRequest {
    FileId file{};
    Grant grant{};
    std::uint64_t offset = 0;  // in the file
    std::uint32_t bytes = 0;
    std::uint32_t at = 0;
    static void fields(auto& io, auto& self) {
        io(self.file, self.grant.rights, self.grant.proof, self.offset, self.bytes, self.at);
    }
};

// Bytes for one chunk. `generation` is that of the file, as the client knows it: the write does nothing if the chunk
// was cut since.
struct WriteRequest {
    FileId file{};
    Grant grant{};
    std::uint64_t offset = 0;
    std::uint64_t generation = 0;
    std::uint32_t bytes = 0;
    std::uint32_t at = 0;
    static void fields(auto& io, auto& self) {
        io(self.file, self.grant.rights, self.grant.proof, self.offset, self.generation, self.bytes, self.at);
    }
};

// To a file's home: chunks elsewhere have bytes up to `end` now.
struct ExtendRequest {
    FileId file{};
    Grant grant{};
    std::uint64_t end = 0;
    std::uint64_t generation = 0;
    static void fields(auto& io, auto& self) {
        io(self.file, self.grant.rights, self.grant.proof, self.end, self.generation);
    }
};

// To a file's home: takes so many bytes behind the end, for a write with O_APPEND.
struct ReserveRequest {
    FileId file{};
    Grant grant{};
    std::uint64_t bytes = 0;
    static void fields(auto& io, auto& self) { io(self.file, self.grant.rights, self.grant.proof, self.bytes); }
};

// Which attributes are set: any of these together.
constexpr std::uint32_t kSetMode = 1;
constexpr std::uint32_t kSetUid = 2;
constexpr std::uint32_t kSetGid = 4;
constexpr std::uint32_t kSetSize = 8;
constexpr std::uint32_t kSetAccessed = 16;
constexpr std::uint32_t kSetModified = 32;
constexpr std::uint32_t kSetTimesNow = 64;  // both times; who may write the file may do this
constexpr std::uint32_t kSetAll = 127;

struct SetAttributesRequest {
    FileId file{};
    Grant grant{};  // for kSetSize alone; without rights, the file's permissions decide
    std::uint32_t what = 0;
    std::uint32_t mode = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint64_t size = 0;
    std::int64_t accessed_ns = 0;
    std::int64_t modified_ns = 0;
    static void fields(auto& io, auto& self) {
        io(self.file, self.grant.rights, self.grant.proof, self.what, self.mode, self.uid, self.gid, self.size,
           self.accessed_ns, self.modified_ns);
    }
};

// unlink, rmdir.
struct RemoveRequest {
    FileId directory{};
    bool is_directory = false;  // what the name has to be
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.directory, self.is_directory, self.name); }
};

// The names that this shard has of a directory, from a cursor on; 0 is the beginning.
struct ListRequest {
    FileId directory{};
    std::uint64_t cursor = 0;
    static void fields(auto& io, auto& self) { io(self.directory, self.cursor); }
};

struct RenameRequest {
    FileId directory{};
    FileId to_directory{};
    bool no_replace = false;
    std::string_view name{};
    std::string_view to_name{};
    static void fields(auto& io, auto& self) {
        io(self.directory, self.to_directory, self.no_replace, self.name, self.to_name);
    }
};

struct LinkRequest {
    FileId file{};
    FileId directory{};
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.file, self.directory, self.name); }
};

struct ReadLinkRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};

// What this shard has room for.
struct StatFsRequest {
    static void fields(auto& /*io*/, auto& /*self*/) {}
};

// fsync: all that this shard has answered is on the medium.
struct SyncRequest {
    static void fields(auto& /*io*/, auto& /*self*/) {}
};

}  // namespace cairn::fs
