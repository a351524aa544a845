// A client's requests to a shard, with a struct for each operation. See README.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "fs/message/fields.hpp"

namespace cairn::fs {

// A client's rights to a file that it has opened: kMayRead, kMayWrite. A shard that opens a file for a client proves
// the rights to all shards. Only shards can make the proof, and other clients cannot use it.
struct Grant {
    std::uint32_t rights = 0;
    std::uint64_t proof = 0;

    friend bool operator==(const Grant&, const Grant&) noexcept = default;
};

// Looks a name up. With rights, also opens the file if its home is this shard.
struct WalkRequest {
    FileId directory{};
    std::uint32_t rights = 0;
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.directory, self.rights, self.name); }
};

// Makes a file, a directory or a symbolic link. With rights, opens it. If the name exists already, acts as a
// WalkRequest, unless it is exclusive.
struct CreateRequest {
    FileId directory{};
    std::uint32_t mode = 0;  // type and permissions, without the umask's
    std::uint32_t rights = 0;
    bool exclusive = true;
    std::string_view name{};
    std::string_view target{};  // for a symbolic link
    static void fields(auto& io, auto& self) {
        io(self.directory, self.mode, self.rights, self.exclusive, self.name, self.target);
    }
};

struct StatRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};

// Opens a file. `proof` is 0, or the client's proof for these rights, if the client had the file open when its home
// ended. The rights were judged before, and are not judged again.
struct OpenRequest {
    FileId file{};
    std::uint32_t rights = 0;
    std::uint64_t proof = 0;
    static void fields(auto& io, auto& self) { io(self.file, self.rights, self.proof); }
};

// Takes back one open().
struct CloseRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};

// The place of a request's data. Below this value, `at` counts from the first byte of the channel's data areas. From it
// on, `at` counts from the first byte of the client's buffers (see hello.hpp). Data lie in one of the two.
constexpr std::uint32_t kBuffersAt = 1U << 31U;

// Reads bytes of one chunk. They go to `at`.
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

// Writes bytes of one chunk. `generation` is the file's, as the client knows it. The write does nothing if the chunk
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

// To a file's home: chunks at other shards have bytes up to `end` now.
struct ExtendRequest {
    FileId file{};
    Grant grant{};
    std::uint64_t end = 0;
    std::uint64_t generation = 0;
    static void fields(auto& io, auto& self) {
        io(self.file, self.grant.rights, self.grant.proof, self.end, self.generation);
    }
};

// To a file's home: reserves `bytes` at the end of the file, for a write with O_APPEND.
struct ReserveRequest {
    FileId file{};
    Grant grant{};
    std::uint64_t bytes = 0;
    static void fields(auto& io, auto& self) { io(self.file, self.grant.rights, self.grant.proof, self.bytes); }
};

// The attributes to set; any of these together.
constexpr std::uint32_t kSetMode = 1;
constexpr std::uint32_t kSetUid = 2;
constexpr std::uint32_t kSetGid = 4;
constexpr std::uint32_t kSetSize = 8;
constexpr std::uint32_t kSetAccessed = 16;
constexpr std::uint32_t kSetModified = 32;
constexpr std::uint32_t kSetTimesNow = 64;  // sets both times to now; every user who may write the file may do this
constexpr std::uint32_t kSetAll = 127;

struct SetAttributesRequest {
    FileId file{};
    Grant grant{};  // only for kSetSize; without rights, the file's permissions decide
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

// Removes a name: unlink, rmdir.
struct RemoveRequest {
    FileId directory{};
    bool is_directory = false;  // whether the name must be a directory's
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.directory, self.is_directory, self.name); }
};

// Lists this shard's names of a directory, from a cursor on; 0 is the beginning.
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

// Asks for the space and the room of this shard.
struct StatFsRequest {
    static void fields(auto& /*io*/, auto& /*self*/) {}
};

// fsync: brings all that this shard has answered to the medium.
struct SyncRequest {
    static void fields(auto& /*io*/, auto& /*self*/) {}
};

}  // namespace cairn::fs
