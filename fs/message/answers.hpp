// The answers of a shard. See README.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fs/message/fields.hpp"

namespace cairn::fs {

// A file's attributes, from its home. Times are ns since 1970.
struct Attributes {
    FileId id{};
    std::uint32_t mode = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint32_t links = 0;
    std::uint64_t size = 0;
    std::uint64_t generation = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    std::int64_t accessed_ns = 0;
    std::int64_t born_ns = 0;
    static void fields(auto& io, auto& self) {
        io(self.id, self.mode, self.uid, self.gid, self.links, self.size, self.generation, self.modified_ns,
           self.changed_ns, self.accessed_ns, self.born_ns);
    }
};

// Answers WalkRequest and CreateRequest.
struct WalkAnswer {
    bool is_home = false;       // this shard is the file's home, so the attributes are complete
    bool is_opened = false;     // the file is open; only at its home
    bool was_made = false;      // this request has made the file
    std::uint64_t proof = 0;    // of the rights that were asked for
    Attributes attributes{};    // if not from the home: only id and the mode's type
    std::string_view target{};  // of a symbolic link
    static void fields(auto& io, auto& self) {
        io(self.is_home, self.is_opened, self.was_made, self.proof);
        Attributes::fields(io, self.attributes);
        io(self.target);
    }
};

// Answers StatRequest, SetAttributesRequest, LinkRequest.
struct AttributesAnswer {
    Attributes attributes{};
    static void fields(auto& io, auto& self) { Attributes::fields(io, self.attributes); }
};

struct OpenAnswer {
    Attributes attributes{};
    std::uint64_t proof = 0;
    static void fields(auto& io, auto& self) {
        Attributes::fields(io, self.attributes);
        io(self.proof);
    }
};

// Answers ReadRequest, WriteRequest, ExtendRequest, ReserveRequest. Only the file's home sets `size`; other shards
// leave 0.
struct DataAnswer {
    std::uint32_t bytes = 0;  // bytes read or written
    bool is_home = false;
    std::uint64_t offset = 0;  // where reserved bytes begin
    std::uint64_t size = 0;    // the file's
    std::uint64_t generation = 0;
    static void fields(auto& io, auto& self) { io(self.bytes, self.is_home, self.offset, self.size, self.generation); }
};

// A name in a list.
struct ListedName {
    FileId child{};
    std::uint32_t mode = 0;    // the type's bits
    std::uint64_t cursor = 0;  // to go on after this name
    std::string_view name{};
    static void fields(auto& io, auto& self) { io(self.child, self.mode, self.cursor, self.name); }
};

// Answers ListRequest. `count` ListedName follow.
struct ListAnswer {
    std::uint16_t count = 0;
    bool is_end = false;  // there are no more names
    static void fields(auto& io, auto& self) { io(self.count, self.is_end); }
};

struct TextAnswer {
    std::string_view text{};
    static void fields(auto& io, auto& self) { io(self.text); }
};

struct StatFsAnswer {
    std::uint64_t bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t files = 0;
    std::uint64_t chunks = 0;
    std::uint64_t log_bytes = 0;
    std::uint64_t index_bytes = 0;  // memory of the daemon for its tables
    static void fields(auto& io, auto& self) {
        io(self.bytes, self.free_bytes, self.files, self.chunks, self.log_bytes, self.index_bytes);
    }
};

struct EmptyAnswer {
    static void fields(auto& /*io*/, auto& /*self*/) {}
};

// The head of each answer. Fields follow if there is no error.
struct AnswerHead {
    std::int32_t error = 0;   // errno, or one of ShardError
    std::uint32_t table = 0;  // lower half of the epoch of the shard's slot table
    static void fields(auto& io, auto& self) { io(self.error, self.table); }
};

// Errors without an errno. A client handles them itself.
constexpr std::int32_t kErrorOtherShard = 10001;       // by this shard's table another shard has it; get a newer table
constexpr std::int32_t kErrorOtherGeneration = 10002;  // the file was cut meanwhile: get its attributes, and ask again
constexpr std::int32_t kErrorMalformed = 10003;        // the request is invalid

template <class Answer>
[[nodiscard]] std::uint32_t put_answer(std::span<std::uint8_t> room, const AnswerHead& head, const Answer& answer) {
    FieldWriter out(room);
    AnswerHead::fields(out, head);
    Answer::fields(out, answer);
    return out.failed() ? 0 : out.bytes();
}

[[nodiscard]] std::uint32_t put_error(std::span<std::uint8_t> room, const AnswerHead& head);

// Returns the head, and fills the answer if there is no error. Returns nothing if these bytes are no such answer.
template <class Answer>
[[nodiscard]] std::optional<AnswerHead> parse_answer(std::span<const std::uint8_t> bytes, Answer& answer) {
    FieldReader in(bytes);
    AnswerHead head;
    AnswerHead::fields(in, head);
    if (head.error == 0) {
        Answer::fields(in, answer);
    }
    return in.is_at_end() ? std::optional(head) : std::nullopt;
}

// Writes a list, name by name.
class ListWriter {
public:
    ListWriter(std::span<std::uint8_t> room, const AnswerHead& head);
    // Returns false, and adds nothing, if there is no room left.
    [[nodiscard]] bool add(const ListedName& name);
    [[nodiscard]] std::uint16_t count() const noexcept { return count_; }
    // Ends the list. Returns the answer's length.
    [[nodiscard]] std::uint32_t finish(bool is_end);

private:
    std::span<std::uint8_t> room_;
    AnswerHead head_;
    std::uint32_t bytes_ = 0;
    std::uint16_t count_ = 0;
};

// Reads a list. Its texts refer to the bytes.
class ListReader {
public:
    explicit ListReader(std::span<const std::uint8_t> bytes);
    // Returns the head, or nothing if these bytes are no list.
    [[nodiscard]] const std::optional<AnswerHead>& head() const noexcept { return head_; }
    [[nodiscard]] const ListAnswer& facts() const noexcept { return facts_; }
    // Returns the next name, or nothing after the last one. Also returns nothing if no valid name follows: see
    // is_whole().
    [[nodiscard]] std::optional<ListedName> next();
    // True if all announced names were read.
    [[nodiscard]] bool is_whole() const noexcept { return head_.has_value() && left_ == 0 && in_.is_at_end(); }

private:
    FieldReader in_;
    std::optional<AnswerHead> head_;
    ListAnswer facts_{};
    std::uint16_t left_ = 0;
};

}  // namespace cairn::fs
