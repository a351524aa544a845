// What shards ask of each other. See README.md.
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
constexpr std::size_t kMostGroups = 256;  // of a client, that shards tell each other

// A client's credentials, in a message.
struct Who {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string_view groups{};  // four bytes each
    static void fields(auto& io, auto& self) { io(self.uid, self.gid, self.groups); }
};
// Refers to the credentials. Groups beyond kMostGroups are left out.
[[nodiscard]] Who who_of(const Credentials& credentials) noexcept;
// Copies the groups to `groups`, and refers to them.
[[nodiscard]] Credentials credentials_of(const Who& who, std::vector<std::uint32_t>& groups);

// A step of a change at several shards, which is made once however often it is asked for. A lane has one change at a
// time, and its next one has the next sequence number.
struct StepId {
    std::uint32_t lane = 0;
    std::uint32_t sequence = 0;
    static void fields(auto& io, auto& self) { io(self.lane, self.sequence); }
};

// To a directory's home: may I go by its attributes for a while?
struct LendRequest {
    FileId directory{};
    static void fields(auto& io, auto& self) { io(self.directory); }
};
// From a directory's home: no longer. The answer's flag: this shard has names in it.
struct RecallRequest {
    FileId directory{};
    static void fields(auto& io, auto& self) { io(self.directory); }
};
// To a directory's home: names came or went.
struct TouchRequest {
    FileId directory{};
    std::int64_t at_ns = 0;
    static void fields(auto& io, auto& self) { io(self.directory, self.at_ns); }
};
// To a file's home. The answer's flag: a client may have it open.
struct PeerStatRequest {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};
// To a file's home: it has a name more, or less. The last one takes the file along.
struct CountRequest {
    StepId step{};
    FileId file{};
    bool is_more = false;
    static void fields(auto& io, auto& self) {
        StepId::fields(io, self.step);
        io(self.file, self.is_more);
    }
};
// To the shards of a file's chunks: what lies in [from, to) goes.
struct CutRequest {
    FileId file{};
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t generation = 0;  // of the file, from now on
    static void fields(auto& io, auto& self) { io(self.file, self.from, self.to, self.generation); }
};
// To a directory's home: the directory goes, if it is empty and the caller may.
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
// To the shard of a name: it is this file's from now on. What had the name loses it. The answer's flag: it was this
// file's already.
struct PlaceRequest {
    StepId step{};
    FileId directory{};
    FileId child{};
    std::uint32_t mode = 0;  // type
    bool no_replace = false;
    std::string_view name{};
    Who who{};
    static void fields(auto& io, auto& self) {
        StepId::fields(io, self.step);
        io(self.directory, self.child, self.mode, self.no_replace, self.name);
        Who::fields(io, self.who);
    }
};
// To a directory's home: which directory is it in?
struct ParentRequest {
    FileId directory{};
    static void fields(auto& io, auto& self) { io(self.directory); }
};
// To a directory's home: it is in this one from now on.
struct SetParentRequest {
    FileId directory{};
    FileId parent{};
    static void fields(auto& io, auto& self) { io(self.directory, self.parent); }
};
// To the root's home: directories move one at a time. The answer comes when it is this shard's turn. Turns have
// numbers, which no two lives of a shard share.
struct MoveTurnRequest {
    enum class What : std::uint8_t {
        Take,
        Resume,    // it was this shard's turn before a restart, and still is
        End,       // or it is no longer wanted
        EndEarly,  // whatever turn an earlier life of this shard had
    };
    What what = What::Take;
    std::uint64_t turn = 0;
    static void fields(auto& io, auto& self) { io(self.what, self.turn); }
};

// Order is the format: new ones come behind the last.
using PeerRequest =
    std::variant<LendRequest, RecallRequest, TouchRequest, PeerStatRequest, CountRequest, CutRequest,
                 RemoveDirectoryRequest, PlaceRequest, ParentRequest, SetParentRequest, MoveTurnRequest>;

struct PeerAnswer {
    std::int32_t error = 0;   // an errno, or below
    bool flag = false;        // see the requests
    Attributes attributes{};  // of the file that was asked for; ParentRequest: `id` is the parent's
    static void fields(auto& io, auto& self) {
        io(self.error, self.flag);
        Attributes::fields(io, self.attributes);
    }
};
constexpr std::int32_t kErrorUnreachable = 10101;  // the other shard does not answer; it may have done what was asked
constexpr std::int32_t kErrorBusy = 10102;         // not now: let go of what you hold, and try again

// What comes from a peer: a request, or the answer to one. `number` is the asker's.
struct PeerMessage {
    std::uint64_t number = 0;
    std::variant<PeerRequest, PeerAnswer> what{};
};

// Returns how long the message is; 0 if it does not fit.
[[nodiscard]] std::uint32_t put_peer_request(std::span<std::uint8_t> room, std::uint64_t number,
                                             const PeerRequest& request);
[[nodiscard]] std::uint32_t put_peer_answer(std::span<std::uint8_t> room, std::uint64_t number,
                                            const PeerAnswer& answer);
// Returns nothing if these bytes are no message of this version. Texts lie in the bytes.
[[nodiscard]] std::optional<PeerMessage> parse_peer_message(std::span<const std::uint8_t> bytes);

}  // namespace cairn::fs
