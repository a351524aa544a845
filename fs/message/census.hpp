// Lists a shard's objects, page by page, for fsck and scrub. For superusers, and for the daemon's own user.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fs/message/answers.hpp"
#include "fs/message/fields.hpp"

namespace cairn::fs {

// The place where a census goes on. Objects are in 256 parts, each in the order of ids; a cursor names the next object.
// An entry that exists during the whole census is listed exactly once. An entry that is added or removed meanwhile may
// be listed. Other readers do not disturb this one. Names of a directory with equal 64-bit hashes may be listed again.
// All this also holds across a restart of the shard.
struct CensusCursor {
    std::uint32_t part = 0;
    FileId id{};
    std::uint64_t more = 0;  // for a directory: a name's hash; for a chunk: its number, and a block in the lower half
    static void fields(auto& io, auto& self) { io(self.part, self.id, self.more); }

    friend bool operator==(const CensusCursor&, const CensusCursor&) noexcept = default;
};

enum class CensusKind : std::uint8_t { Files, Names, Chunks };

// To every shard: lists its objects of this kind, from a cursor on.
struct CensusRequest {
    CensusKind kind = CensusKind::Files;
    CensusCursor cursor{};
    static void fields(auto& io, auto& self) {
        io(self.kind);
        CensusCursor::fields(io, self.cursor);
    }
};

// To every shard: compares the blocks of its chunks with their checksums, from a cursor on, some in each call.
struct ScrubRequest {
    CensusCursor cursor{};
    std::uint32_t blocks = 0;  // at most this many; a shard may stop earlier
    static void fields(auto& io, auto& self) {
        CensusCursor::fields(io, self.cursor);
        io(self.blocks);
    }
};

// A file at its home.
struct CountedFile {
    FileId id{};
    FileId parent{};  // for a directory
    std::uint32_t mode = 0;
    std::uint32_t links = 0;
    std::uint64_t size = 0;
    bool is_open = false;  // also true if it may be: after a restart, until clients have had time to come back
    static void fields(auto& io, auto& self) {
        io(self.id, self.parent, self.mode, self.links, self.size, self.is_open);
    }
};

struct CountedName {
    FileId directory{};
    FileId child{};
    std::uint32_t mode = 0;  // the type's bits
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.directory, self.child, self.mode, self.name); }
};

struct CountedChunk {
    FileId file{};
    std::uint32_t index = 0;
    std::uint32_t blocks = 0;  // after a scrub: only the damaged ones
    static void fields(auto& io, auto& self) { io(self.file, self.index, self.blocks); }
};

// Answers CensusRequest and ScrubRequest. `count` objects follow; for a scrub, the chunks with damaged blocks.
struct CensusAnswer {
    std::uint16_t count = 0;
    bool is_end = false;
    CensusCursor next{};
    std::uint32_t under_way = 0;  // changes that this shard has begun; a listed object may be a part of one
    std::uint32_t blocks = 0;     // number of compared blocks
    static void fields(auto& io, auto& self) {
        io(self.count, self.is_end);
        CensusCursor::fields(io, self.next);
        io(self.under_way, self.blocks);
    }
};

class CensusWriter {
public:
    CensusWriter(std::span<std::uint8_t> room, const AnswerHead& head);
    // Returns false, and adds nothing, if there is no room left.
    template <class Counted>
    [[nodiscard]] bool add(const Counted& counted) {
        FieldWriter out(room_.subspan(bytes_));
        Counted::fields(out, counted);
        if (out.failed()) {
            return false;
        }
        bytes_ += out.bytes();
        ++count_;
        return true;
    }
    // Ends the answer and sets its count. Returns its length.
    [[nodiscard]] std::uint32_t finish(CensusAnswer answer);

private:
    std::span<std::uint8_t> room_;
    AnswerHead head_;
    std::uint32_t bytes_ = 0;
    std::uint16_t count_ = 0;
};

// Reads an answer. Its texts refer to the bytes.
class CensusReader {
public:
    explicit CensusReader(std::span<const std::uint8_t> bytes);
    // Returns the head, or nothing if these bytes are no such answer.
    [[nodiscard]] const std::optional<AnswerHead>& head() const noexcept { return head_; }
    [[nodiscard]] const CensusAnswer& facts() const noexcept { return facts_; }
    // Returns the next object, or nothing after the last one. Also returns nothing if no valid object follows: see
    // is_whole().
    template <class Counted>
    [[nodiscard]] std::optional<Counted> next() {
        std::optional<Counted> counted;
        if (left_ != 0) {
            Counted::fields(in_, counted.emplace());
            --left_;
        }
        return in_.failed() ? std::nullopt : counted;
    }
    // True if all announced objects were read.
    [[nodiscard]] bool is_whole() const noexcept { return head_.has_value() && left_ == 0 && in_.is_at_end(); }

private:
    FieldReader in_;
    std::optional<AnswerHead> head_;
    CensusAnswer facts_{};
    std::uint16_t left_ = 0;
};

}  // namespace cairn::fs
