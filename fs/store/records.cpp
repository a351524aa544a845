#include "fs/store/records.hpp"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

// The values are on the medium, so new kinds are added at the end.
enum class Kind : std::uint8_t {
    None,
    Inode,
    Dentry,
    Chunk,
    Answer,
    Intent,
    InodeGone,
    DentryGone,
    ChunkGone,
    AnswerGone,
    IntentGone,
    NextUnit,
    Life,
    Synced,
    Count,
};

constexpr std::uint32_t kAlign = 8;
constexpr std::uint32_t kHeaderBytes = 8;

struct RawHeader {
    Kind kind;
    std::uint8_t zero;
    std::uint16_t bytes;  // length with this header, without the padding to a multiple of 8
    std::uint32_t more;   // depends on the kind
};
static_assert(sizeof(RawHeader) == kHeaderBytes);

struct RawExtent {
    std::uint32_t first;
    std::uint16_t at;
    std::uint16_t count;
};
static_assert(sizeof(RawExtent) == 8);

// Appends the fields of a record. Lengths are set by finish().
class Writer {
public:
    Writer(std::vector<std::uint8_t>& entry, Kind kind, std::uint32_t more = 0) : entry_(entry), begin_(entry.size()) {
        put(RawHeader{kind, 0, 0, more});
    }
    template <class Value>
    void put(const Value& value) {
        static_assert(std::is_trivially_copyable_v<Value> && std::has_unique_object_representations_v<Value>);
        put_bytes({reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)});
    }
    void put_bytes(std::span<const std::uint8_t> bytes) { entry_.insert(entry_.end(), bytes.begin(), bytes.end()); }
    void put_text(std::string_view text) {
        put_bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    }
    void finish() {
        const std::size_t bytes = entry_.size() - begin_;
        CAIRN_ASSERT(bytes <= 0xffff);
        const auto length = static_cast<std::uint16_t>(bytes);
        std::memcpy(entry_.data() + begin_ + offsetof(RawHeader, bytes), &length, sizeof(length));
        entry_.resize(begin_ + (bytes + kAlign - 1) / kAlign * kAlign);
    }

private:
    std::vector<std::uint8_t>& entry_;
    std::size_t begin_;
};

// Reads the fields of a record. A missing field reads as zero, and failed() is true afterwards.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> body) noexcept : rest_(body) {}
    template <class Value>
    Value take() noexcept {
        Value value{};
        if (sizeof(value) <= rest_.size()) {
            std::memcpy(&value, rest_.data(), sizeof(value));
            rest_ = rest_.subspan(sizeof(value));
        } else {
            failed_ = true;
        }
        return value;
    }
    [[nodiscard]] std::span<const std::uint8_t> take_rest() noexcept { return std::exchange(rest_, {}); }
    [[nodiscard]] std::string_view take_text() noexcept {
        const std::span<const std::uint8_t> text = take_rest();
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }
    // True if the record was read to its end, and no field was missing.
    [[nodiscard]] bool fits() const noexcept { return !failed_ && rest_.empty(); }

private:
    std::span<const std::uint8_t> rest_;
    bool failed_ = false;
};

struct RawInode {
    FileId id;
    std::uint64_t size;
    std::uint64_t generation;
    std::int64_t modified_ns;
    std::int64_t changed_ns;
    std::int64_t accessed_ns;
    std::int64_t born_ns;
    std::uint64_t leases;
    std::uint32_t mode;
    std::uint32_t uid;
    std::uint32_t gid;
    std::uint32_t links;
};
static_assert(sizeof(RawInode) == 88);

struct Putter {
    std::vector<std::uint8_t>& entry;

    void operator()(const Inode& inode) const {
        CAIRN_ASSERT(inode.target.size() <= kLongestPath);
        Writer writer(entry, Kind::Inode);
        writer.put(RawInode{inode.id, inode.size, inode.generation, inode.modified_ns, inode.changed_ns,
                            inode.accessed_ns, inode.born_ns, inode.leases, inode.mode, inode.uid, inode.gid,
                            inode.links});
        writer.put_text(inode.target);
        writer.finish();
    }
    void operator()(const Dentry& dentry) const {
        CAIRN_ASSERT(!dentry.name.empty() && dentry.name.size() <= kLongestName);
        Writer writer(entry, Kind::Dentry, dentry.mode);
        writer.put(dentry.parent);
        writer.put(dentry.child);
        writer.put_text(dentry.name);
        writer.finish();
    }
    void operator()(const Chunk& chunk) const {
        Writer writer(entry, Kind::Chunk, chunk.id.index);
        writer.put(chunk.id.file);
        writer.put(chunk.generation);
        for (const Extent& extent : chunk.extents) {
            writer.put(RawExtent{extent.run.first, static_cast<std::uint16_t>(extent.at),
                                 static_cast<std::uint16_t>(extent.run.count)});
        }
        writer.finish();
    }
    void operator()(const AnswerRecord& answer) const {
        Writer writer(entry, Kind::Answer, answer.id.slot);
        writer.put(answer.id.client);
        writer.put(answer.result);
        writer.put(std::uint64_t{answer.sequence});
        writer.finish();
    }
    void operator()(const Intent& intent) const {
        CAIRN_ASSERT(intent.said.size() <= kMostIntentBytes);
        Writer writer(entry, Kind::Intent);
        writer.put(intent.number);
        writer.put_bytes(intent.said);
        writer.finish();
    }
    void operator()(const Life& life) const { put_key(Kind::Life, life); }
    void operator()(const Synced&) const { Writer(entry, Kind::Synced).finish(); }
    void operator()(const NextUnit& next) const { Writer(entry, Kind::NextUnit, next.unit).finish(); }
    void operator()(const Gone& gone) const { std::visit(*this, gone.what); }
    void operator()(const FileId& id) const { put_key(Kind::InodeGone, id); }
    void operator()(const Gone::IntentNumber& intent) const { put_key(Kind::IntentGone, intent.number); }
    void operator()(const ChunkId& id) const { put_key(Kind::ChunkGone, id.file, id.index); }
    void operator()(const AnswerId& id) const { put_key(Kind::AnswerGone, id.client, id.slot); }
    void operator()(const Gone::Name& name) const {
        Writer writer(entry, Kind::DentryGone);
        writer.put(name.parent);
        writer.put_text(name.name);
        writer.finish();
    }

private:
    template <class Key>
    void put_key(Kind kind, const Key& key, std::uint32_t more = 0) const {
        Writer writer(entry, kind, more);
        writer.put(key);
        writer.finish();
    }
};

// The body of a record, or nothing if the bytes do not fit their kind. `more` is from the header.
using Body = std::optional<Record>;

Body read_inode(Reader& body, std::uint32_t, std::vector<Extent>&) {
    const auto raw = body.take<RawInode>();
    Inode inode{raw.id,          raw.mode,       raw.uid,         raw.gid,     raw.links,  raw.size, raw.generation,
                raw.modified_ns, raw.changed_ns, raw.accessed_ns, raw.born_ns, raw.leases, {}};
    inode.target = body.take_text();
    return inode.target.size() <= kLongestPath ? Body(inode) : std::nullopt;
}

Body read_dentry(Reader& body, std::uint32_t mode, std::vector<Extent>&) {
    Dentry dentry;
    dentry.mode = mode;
    dentry.parent = body.take<FileId>();
    dentry.child = body.take<FileId>();
    dentry.name = body.take_text();
    return !dentry.name.empty() && dentry.name.size() <= kLongestName ? Body(dentry) : std::nullopt;
}

// Reads extents. Returns false if they are not in order, or one has no blocks.
bool read_extents(std::span<const std::uint8_t> raws, std::vector<Extent>& extents) {
    extents.clear();
    std::uint32_t end = 0;
    for (; raws.size() >= sizeof(RawExtent); raws = raws.subspan(sizeof(RawExtent))) {
        RawExtent raw;
        std::memcpy(&raw, raws.data(), sizeof(raw));
        if (raw.count == 0 || raw.at < end) {
            return false;
        }
        end = std::uint32_t{raw.at} + raw.count;
        extents.push_back({raw.at, {raw.first, raw.count}});
    }
    return raws.empty();
}

Body read_chunk(Reader& body, std::uint32_t index, std::vector<Extent>& extents) {
    Chunk chunk;
    chunk.id = {body.take<FileId>(), index};
    chunk.generation = body.take<std::uint64_t>();
    if (!read_extents(body.take_rest(), extents)) {
        return std::nullopt;
    }
    chunk.extents = extents;
    return chunk;
}

Body read_answer(Reader& body, std::uint32_t slot, std::vector<Extent>&) {
    AnswerRecord answer;
    answer.id = {body.take<std::uint64_t>(), slot};
    answer.result = body.take<std::int64_t>();
    const auto sequence = body.take<std::uint64_t>();
    answer.sequence = static_cast<std::uint32_t>(sequence);
    return sequence == answer.sequence ? Body(answer) : std::nullopt;
}

Body read_intent(Reader& body, std::uint32_t, std::vector<Extent>&) {
    Intent intent;
    intent.number = body.take<std::uint64_t>();
    intent.said = body.take_rest();
    return intent.said.size() <= kMostIntentBytes ? Body(intent) : std::nullopt;
}

Body read_inode_gone(Reader& body, std::uint32_t, std::vector<Extent>&) {
    return Gone{body.take<FileId>()};
}

Body read_dentry_gone(Reader& body, std::uint32_t, std::vector<Extent>&) {
    Gone::Name name;
    name.parent = body.take<FileId>();
    name.name = body.take_text();
    return name.name.size() <= kLongestName ? Body(Gone{name}) : std::nullopt;
}

Body read_chunk_gone(Reader& body, std::uint32_t index, std::vector<Extent>&) {
    return Gone{ChunkId{body.take<FileId>(), index}};
}

Body read_answer_gone(Reader& body, std::uint32_t slot, std::vector<Extent>&) {
    return Gone{AnswerId{body.take<std::uint64_t>(), slot}};
}

Body read_intent_gone(Reader& body, std::uint32_t, std::vector<Extent>&) {
    return Gone{Gone::IntentNumber{body.take<std::uint64_t>()}};
}

Body read_next_unit(Reader&, std::uint32_t unit, std::vector<Extent>&) {
    return NextUnit{unit};
}

Body read_life(Reader& body, std::uint32_t, std::vector<Extent>&) {
    return body.take<Life>();
}

Body read_synced(Reader&, std::uint32_t, std::vector<Extent>&) {
    return Synced{};
}

Body read_nothing(Reader&, std::uint32_t, std::vector<Extent>&) {
    return std::nullopt;
}

using ReadBody = Body (*)(Reader&, std::uint32_t, std::vector<Extent>&);
// By kind.
constexpr std::array<ReadBody, static_cast<std::size_t>(Kind::Count)> kReadBody{
    read_nothing,     read_inode,      read_dentry,      read_chunk,       read_answer,    read_intent, read_inode_gone,
    read_dentry_gone, read_chunk_gone, read_answer_gone, read_intent_gone, read_next_unit, read_life,   read_synced};

}  // namespace

void put_record(std::vector<std::uint8_t>& entry, const Record& record) {
    std::visit(Putter{entry}, record);
}

std::optional<Record> RecordReader::next() {
    if (rest_.empty() || failed_) {
        return std::nullopt;
    }
    failed_ = true;  // reset below once all of it fits
    RawHeader header{};
    if (rest_.size() < sizeof(header)) {
        return std::nullopt;
    }
    std::memcpy(&header, rest_.data(), sizeof(header));
    const std::size_t whole = (std::size_t{header.bytes} + kAlign - 1) / kAlign * kAlign;
    if (header.bytes < sizeof(header) || whole > rest_.size() || header.kind >= Kind::Count) {
        return std::nullopt;
    }
    raw_ = rest_.first(whole);
    rest_ = rest_.subspan(whole);
    Reader body(raw_.first(header.bytes).subspan(sizeof(header)));
    std::optional<Record> record = kReadBody[static_cast<std::size_t>(header.kind)](body, header.more, extents_);
    failed_ = !record || !body.fits();
    return failed_ ? std::nullopt : record;
}

}  // namespace cairn::fs
