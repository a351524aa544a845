// Requests between shards. See README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "fs/message/answers.hpp"
#include "fs/message/fields.hpp"
#include "fs/rules/access.hpp"

namespace cairn::fs {

constexpr std::uint32_t kMostPeerBytes = 4096;
constexpr std::size_t kMostGroups = 256;  // most groups of a client in a message

// A client's credentials, in a message.
struct Who {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string_view groups{};  // four bytes each
    static void fields(auto& io, auto& self) { io(self.uid, self.gid, self.groups); }
};
// Returns a message's form of the credentials, which refers to them. Leaves out groups beyond kMostGroups.
[[nodiscard]] Who who_of(const Credentials& credentials) noexcept;
// Copies the groups to `groups`. Returns credentials that refer to them.
[[nodiscard]] Credentials credentials_of(const Who& who, std::vector<std::uint32_t>& groups);

// A step of a change at several shards. It is made once, however often it is requested. A lane has one change at a
// time. Its next change has the next sequence number.
struct StepId {
    std::uint32_t lane = 0;
    std::uint32_t sequence = 0;
    static void fields(auto& io, auto& self) { io(self.lane, self.sequence); }
};

// To a directory's home: asks for the right to use its attributes for a while.
struct LendRequest {
    FileId directory{};
    static void fields(auto& io, auto& self) { io(self.directory); }
};
// From a directory's home: takes that right back. The answer's flag: this shard has names in the directory.
struct RecallRequest {
    FileId directory{};
    static void fields(auto& io, auto& self) { io(self.directory); }
};
// To a directory's home: names in it came or went.
struct TouchRequest {
    FileId directory{};
    std::int64_t at_ns = 0;
    static void fields(auto& io, auto& self) { io(self.directory, self.at_ns); }
};
// To a file's home: asks for attributes. The answer's flag: a client may have the file open.
struct PeerStatRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};
// To a file's home: adds or removes one of the file's names. When the last one is removed, the file is removed, too.
struct CountRequest {
    StepId step{};
    FileId file{};
    bool is_more = false;
    static void fields(auto& io, auto& self) {
        StepId::fields(io, self.step);
        io(self.file, self.is_more);
    }
};
// To the shards of a file's chunks: removes the bytes in [from, to).
struct CutRequest {
    FileId file{};
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t generation = 0;  // the file's from now on
    static void fields(auto& io, auto& self) { io(self.file, self.from, self.to, self.generation); }
};
// To a directory's home: removes the directory, if it is empty and the caller may.
struct RemoveDirectoryRequest {
    StepId step{};
    FileId directory{};
    std::uint32_t parent_mode = 0;
    std::uint32_t parent_uid = 0;
    std::uint32_t parent_gid = 0;
    Who who{};
    static void fields(auto& io, auto& self) {
        StepId::fields(io, self.step);
        io(self.directory, self.parent_mode, self.parent_uid, self.parent_gid);
        Who::fields(io, self.who);
    }
};
// To the shard of a name: gives the name to this file. The file that had the name loses it. The answer's flag: the name
// was this file's already.
struct PlaceRequest {
    StepId step{};
    FileId directory{};
    FileId child{};
    std::uint32_t mode = 0;  // the type's bits
    bool no_replace = false;
    std::string_view name{};
    Who who{};
    static void fields(auto& io, auto& self) {
        StepId::fields(io, self.step);
        io(self.directory, self.child, self.mode, self.no_replace, self.name);
        Who::fields(io, self.who);
    }
};
// To a directory's home: asks for the directory's parent.
struct ParentRequest {
    FileId directory{};
    static void fields(auto& io, auto& self) { io(self.directory); }
};
// To a directory's home: sets the directory's parent.
struct SetParentRequest {
    FileId directory{};
    FileId parent{};
    static void fields(auto& io, auto& self) { io(self.directory, self.parent); }
};
// To the root's home: asks for the turn to move a directory, since directories move one at a time. The answer comes
// when it is this shard's turn. No two lives of a shard use the same number for a turn.
struct MoveTurnRequest {
    enum class What : std::uint8_t {
        Take,
        Resume,    // this shard had the turn before a restart, and still has it
        End,       // ends the turn, or the wait for it
        EndEarly,  // ends any turn of an earlier life of this shard
    };
    What what = What::Take;
    std::uint64_t turn = 0;
    static void fields(auto& io, auto& self) { io(self.what, self.turn); }
};

// The order is the format: new kinds are added at the end.
using PeerRequest =
    std::variant<LendRequest, RecallRequest, TouchRequest, PeerStatRequest, CountRequest, CutRequest,
                 RemoveDirectoryRequest, PlaceRequest, ParentRequest, SetParentRequest, MoveTurnRequest>;

struct PeerAnswer {
    std::int32_t error = 0;   // an errno, or one of those below
    bool flag = false;        // see the requests
    Attributes attributes{};  // of the requested file; for ParentRequest, `id` is the parent's
    static void fields(auto& io, auto& self) {
        io(self.error, self.flag);
        Attributes::fields(io, self.attributes);
    }
};
constexpr std::int32_t kErrorUnreachable = 10101;  // the other shard does not answer; it may have done the request
constexpr std::int32_t kErrorBusy = 10102;         // not now: release all gates, and try again

// A message between shards: a request or an answer. `number` is the requester's.
struct PeerMessage {
    std::uint64_t number = 0;
    std::variant<PeerRequest, PeerAnswer> what{};
};

// Write a message. Return its length, or 0 if it does not fit.
[[nodiscard]] std::uint32_t put_peer_request(std::span<std::uint8_t> room, std::uint64_t number,
                                             const PeerRequest& request);
[[nodiscard]] std::uint32_t put_peer_answer(std::span<std::uint8_t> room, std::uint64_t number,
                                            const PeerAnswer& answer);
// Parses a message. Returns nothing if these bytes are no message of this version. Texts refer to the bytes.
[[nodiscard]] std::optional<PeerMessage> parse_peer_message(std::span<const std::uint8_t> bytes);

}  // namespace cairn::fs
