#include "tests/unit/fs_client/fake_files.hpp"

namespace cairn::fs {

FakeFiles::Bytes FakeFiles::error(int error) {
    Bytes bytes(kAnswerBytes);
    bytes.resize(put_error(bytes, {error, 1}));
    return bytes;
}

std::span<std::uint8_t> FakeFiles::memory_at(std::uint32_t at, std::uint32_t bytes) const {
    const bool is_buffer = at >= kBuffersAt;
    const std::span<std::uint8_t> all = is_buffer ? memory_.buffers : memory_.data;
    const std::uint32_t from = is_buffer ? at - kBuffersAt : at;
    EXPECT_LE(std::uint64_t{from} + bytes, all.size());
    return all.subspan(from, bytes);
}

FakeFiles::Node* FakeFiles::find(const FileId& id) {
    const auto at = nodes_.find(id);
    return at == nodes_.end() ? nullptr : &at->second;
}

int FakeFiles::judge(const FileId& directory, std::string_view name) {
    EXPECT_LE(name.size(), 255U);
    EXPECT_TRUE(name != "." && name != ".." && name.find('/') == std::string_view::npos);
    if (!is_mine(view_.slot_of(directory, name))) {
        return kErrorOtherShard;
    }
    const Node* const at = find(directory);
    return at == nullptr ? ENOENT : S_ISDIR(at->attributes.mode) ? 0 : ENOTDIR;
}

FakeFiles::Bytes FakeFiles::walked(const FileId& id, std::uint32_t rights, bool was_made) {
    Node& child = node(id);
    WalkAnswer answer;
    answer.was_made = was_made;
    answer.attributes.id = id;
    answer.attributes.mode = child.attributes.mode & S_IFMT;
    if (is_home(id)) {
        answer.is_home = true;
        answer.attributes = child.attributes;
        answer.target = child.target;
        if (rights != 0 && !S_ISLNK(child.attributes.mode)) {
            ++child.open;
            answer.is_opened = true;
            answer.proof = kFakeProof;
        }
    }
    return ok(answer);
}

FakeFiles::Bytes FakeFiles::handle(const WalkRequest& request) {
    asked.emplace_back("walk");
    if (const int wrong = judge(request.directory, request.name); wrong != 0) {
        return error(wrong);
    }
    const auto& names = node(request.directory).names;
    const auto at = names.find(request.name);
    return at == names.end() ? error(ENOENT) : walked(at->second, request.rights, false);
}

FakeFiles::Bytes FakeFiles::handle(const CreateRequest& request) {
    asked.emplace_back("create");
    if (const int wrong = judge(request.directory, request.name); wrong != 0) {
        return error(wrong);
    }
    auto& names = node(request.directory).names;
    if (const auto at = names.find(request.name); at != names.end()) {
        return request.exclusive ? error(EEXIST) : walked(at->second, request.rights, false);
    }
    const FileId id{std::uint64_t{view_.slot_of(request.directory, request.name)} << 48U | ++serial_, serial_ * 7};
    names[std::string(request.name)] = id;
    Node& made = nodes_[id];
    made.attributes = {.id = id, .mode = request.mode, .links = 1};
    made.target = request.target;
    return walked(id, request.rights, true);
}

FakeFiles::Bytes FakeFiles::handle(const StatRequest& request) {
    asked.emplace_back("stat");
    return attributes_of(request.file);
}

FakeFiles::Bytes FakeFiles::attributes_of(const FileId& id) {
    EXPECT_TRUE(is_home(id));
    const Node* const at = find(id);
    return at == nullptr ? error(ESTALE) : ok(AttributesAnswer{at->attributes});
}

FakeFiles::Bytes FakeFiles::handle(const OpenRequest& request) {
    asked.emplace_back(request.proof == kFakeProof ? "reopen" : "open");
    EXPECT_TRUE(is_home(request.file));
    Node* const at = find(request.file);
    if (at == nullptr) {
        return error(ESTALE);
    }
    ++at->open;
    return ok(OpenAnswer{at->attributes, kFakeProof});
}

FakeFiles::Bytes FakeFiles::handle(const CloseRequest& request) {
    asked.emplace_back("close");
    EXPECT_TRUE(is_home(request.file));
    Node* const at = find(request.file);
    if (at == nullptr || at->open == 0) {
        return error(EBADF);
    }
    --at->open;
    return ok(EmptyAnswer{});
}

bool FakeFiles::owns_chunk(const FileId& file, std::uint64_t offset) const {
    return is_mine(Placement::slot_of_chunk(file.home_slot(), view_.chunk_of(offset)));
}

DataAnswer FakeFiles::data_answer(const FileId& file, std::uint32_t bytes) {
    DataAnswer answer{bytes, is_home(file)};
    if (answer.is_home) {
        answer.size = node(file).attributes.size;
        answer.generation = node(file).attributes.generation;
    }
    return answer;
}

FakeFiles::Bytes FakeFiles::handle(const ReadRequest& request) {
    asked.emplace_back("read");
    const std::uint64_t in_chunk = request.offset % view_.chunk_bytes();
    EXPECT_TRUE(owns_chunk(request.file, request.offset));
    EXPECT_LE(in_chunk + request.bytes, view_.chunk_bytes());
    EXPECT_EQ(request.grant.proof, kFakeProof);
    std::string& chunk = node(request.file).chunks[request.offset / view_.chunk_bytes()];
    chunk.resize(view_.chunk_bytes());
    std::memcpy(memory_at(request.at, request.bytes).data(), chunk.data() + in_chunk, request.bytes);
    DataAnswer answer = data_answer(request.file, request.bytes);
    if (answer.is_home) {
        const std::uint64_t left = answer.size > request.offset ? answer.size - request.offset : 0;
        answer.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, request.bytes));
    }
    return ok(answer);
}

FakeFiles::Bytes FakeFiles::handle(const WriteRequest& request) {
    asked.emplace_back("write");
    const std::uint64_t in_chunk = request.offset % view_.chunk_bytes();
    EXPECT_TRUE(owns_chunk(request.file, request.offset));
    EXPECT_LE(in_chunk + request.bytes, view_.chunk_bytes());
    Node& file = node(request.file);
    if (request.generation < file.attributes.generation) {
        return error(kErrorOtherGeneration);
    }
    std::string& chunk = file.chunks[request.offset / view_.chunk_bytes()];
    chunk.resize(view_.chunk_bytes());
    std::memcpy(chunk.data() + in_chunk, memory_at(request.at, request.bytes).data(), request.bytes);
    if (is_home(request.file)) {
        file.attributes.size = std::max(file.attributes.size, request.offset + request.bytes);
    }
    return ok(data_answer(request.file, request.bytes));
}

FakeFiles::Bytes FakeFiles::handle(const ExtendRequest& request) {
    asked.emplace_back("extend");
    Node& file = node(request.file);
    if (request.generation < file.attributes.generation) {
        return error(kErrorOtherGeneration);
    }
    file.attributes.size = std::max(file.attributes.size, request.end);
    return ok(data_answer(request.file, 0));
}

FakeFiles::Bytes FakeFiles::handle(const ReserveRequest& request) {
    asked.emplace_back("reserve");
    Node& file = node(request.file);
    const std::uint64_t offset = file.attributes.size;
    file.attributes.size += request.bytes;
    DataAnswer answer = data_answer(request.file, 0);
    answer.offset = offset;
    return ok(answer);
}

// Cuts the file, up to the size that its home knows.
void FakeFiles::cut(Node& file, std::uint64_t size) {
    for (auto& [index, chunk] : file.chunks) {
        const std::uint64_t begin = index * view_.chunk_bytes();
        const std::uint64_t from = std::clamp(size, begin, begin + chunk.size());
        const std::uint64_t to = std::clamp(file.attributes.size, from, begin + chunk.size());
        std::fill(chunk.begin() + static_cast<std::ptrdiff_t>(from - begin),
                  chunk.begin() + static_cast<std::ptrdiff_t>(to - begin), '\0');
    }
}

FakeFiles::Bytes FakeFiles::handle(const SetAttributesRequest& request) {
    asked.emplace_back("setattr");
    Attributes& attributes = node(request.file).attributes;
    if ((request.what & kSetMode) != 0) {
        attributes.mode = (attributes.mode & S_IFMT) | request.mode;
    }
    if ((request.what & kSetSize) != 0) {
        cut(node(request.file), request.size);
        attributes.generation += request.size < attributes.size ? 1 : 0;
        attributes.size = request.size;
    }
    return attributes_of(request.file);
}

FakeFiles::Bytes FakeFiles::handle(const RemoveRequest& request) {
    asked.emplace_back("remove");
    if (const int wrong = judge(request.directory, request.name); wrong != 0) {
        return error(wrong);
    }
    auto& names = node(request.directory).names;
    const auto at = names.find(request.name);
    if (at == names.end()) {
        return error(ENOENT);
    }
    if (S_ISDIR(node(at->second).attributes.mode) != request.is_directory) {
        return error(request.is_directory ? ENOTDIR : EISDIR);
    }
    nodes_.erase(at->second);
    names.erase(at);
    return ok(EmptyAnswer{});
}

FakeFiles::Bytes FakeFiles::handle(const ListRequest& request) {
    asked.emplace_back("list");
    const Node* const directory = find(request.directory);
    if (directory == nullptr) {
        return error(ENOENT);
    }
    Bytes bytes(kAnswerBytes);
    ListWriter list(bytes, {0, 1});
    std::uint64_t place = 0;  // two names share each one
    bool is_end = true;
    for (const auto& [name, child] : directory->names) {
        if (!is_mine(view_.slot_of(request.directory, name))) {
            continue;
        }
        const std::uint64_t own = place++ / 2;
        if (own < request.cursor) {
            continue;
        }
        is_end = list.count() < list_at_once;
        if (!is_end || !list.add({child, node(child).attributes.mode & S_IFMT, own + (place + 1) % 2, name})) {
            break;
        }
    }
    bytes.resize(list.finish(is_end));
    return bytes;
}

FakeFiles::Bytes FakeFiles::handle(const RenameRequest& request) {
    asked.emplace_back("rename");
    if (const int wrong = judge(request.directory, request.name); wrong != 0) {
        return error(wrong);
    }
    if (!node(request.directory).names.contains(request.name)) {
        return error(ENOENT);
    }
    if (request.no_replace && node(request.to_directory).names.contains(request.to_name)) {
        return error(EEXIST);
    }
    move(request.directory, request.name, request.to_directory, request.to_name);
    return ok(EmptyAnswer{});
}

FakeFiles::Bytes FakeFiles::handle(const LinkRequest& request) {
    asked.emplace_back("link");
    if (const int wrong = judge(request.directory, request.name); wrong != 0) {
        return error(wrong);
    }
    node(request.directory).names[std::string(request.name)] = request.file;
    ++node(request.file).attributes.links;
    return ok(AttributesAnswer{node(request.file).attributes});
}

FakeFiles::Bytes FakeFiles::handle(const ReadLinkRequest& request) {
    asked.emplace_back("readlink");
    EXPECT_TRUE(is_home(request.file));
    return ok(TextAnswer{node(request.file).target});
}

FakeFiles::Bytes FakeFiles::handle(const StatFsRequest& /*request*/) {
    asked.emplace_back("statfs");
    return ok(StatFsAnswer{1000, 600, 10, 20, 30, 40});
}

FakeFiles::Bytes FakeFiles::handle(const CensusRequest& /*request*/) {
    asked.emplace_back("census");
    Bytes bytes(kAnswerBytes);
    CensusWriter writer(bytes, {0, 1});
    EXPECT_TRUE(writer.add(CountedChunk{{1, 2}, 3, 4}));
    bytes.resize(writer.finish({0, true}));
    return bytes;
}

FakeFiles::Bytes FakeFiles::handle(const ScrubRequest& /*request*/) {
    asked.emplace_back("scrub");
    return error(EPERM);
}

FakeFiles::Bytes FakeFiles::handle(const SyncRequest& /*request*/) {
    asked.emplace_back("sync");
    return ok(EmptyAnswer{});
}

}  // namespace cairn::fs
