// A file system in a map that clients cannot tell from shards: it gives the answers of shards.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/client/view.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"

namespace cairn::fs {

constexpr FileId kFakeRoot{1, 1};
constexpr std::uint64_t kFakeProof = 77;

class FakeFiles {
public:
    struct Node {
        Attributes attributes{};
        std::string target{};
        std::map<std::string, FileId, std::less<>> names{};
        std::map<std::uint64_t, std::string> chunks{};  // by index
        int open = 0;
    };
    using Bytes = std::vector<std::uint8_t>;
    // The client's memory: slots' data, and its buffers.
    struct Memory {
        std::span<std::uint8_t> data{};
        std::span<std::uint8_t> buffers{};
    };

    FakeFiles(const View& view) : view_(view) {
        nodes_[kFakeRoot].attributes = {.id = kFakeRoot, .mode = S_IFDIR | 0777, .links = 1};
    }

    // Returns the answer of a shard to a request of one of its clients.
    Bytes answer(const ParsedRequest& parsed, const Memory& memory) {
        shard_ = parsed.head.shard;
        memory_ = memory;
        return std::visit([this](const auto& request) { return handle(request); }, parsed.request);
    }

    [[nodiscard]] Node& node(const FileId& id) { return nodes_.at(id); }
    [[nodiscard]] const std::map<FileId, Node>& nodes() const { return nodes_; }
    // Puts a name at another place than its file's home.
    void move(const FileId& from, std::string_view name, const FileId& to, std::string_view new_name) {
        auto& names = node(from).names;
        const auto at = names.find(name);
        node(to).names[std::string(new_name)] = at->second;
        names.erase(at);
    }

    void forget_who_has_open() {
        for (auto& [id, node] : nodes_) {
            node.open = 0;
        }
    }

    std::size_t list_at_once = 3;
    std::vector<std::string> asked{};  // "walk", ...

private:
    template <class Answer>
    Bytes ok(const Answer& answer) {
        Bytes bytes(kAnswerBytes);
        bytes.resize(put_answer(bytes, {0, 1}, answer));
        return bytes;
    }
    static Bytes error(int error);
    // Returns the client's memory from `at` on, which exists (expected).
    [[nodiscard]] std::span<std::uint8_t> memory_at(std::uint32_t at, std::uint32_t bytes) const;
    [[nodiscard]] bool is_mine(std::uint16_t slot) const { return view_.owner(slot) == shard_; }
    [[nodiscard]] bool is_home(const FileId& file) const { return is_mine(file.home_slot()); }
    Node* find(const FileId& id);
    // Returns 0, or the errno of looking up a name there.
    int judge(const FileId& directory, std::string_view name);
    Bytes walked(const FileId& id, std::uint32_t rights, bool was_made);
    Bytes handle(const WalkRequest& request);
    Bytes handle(const CreateRequest& request);
    Bytes handle(const StatRequest& request);
    Bytes attributes_of(const FileId& id);
    Bytes handle(const OpenRequest& request);
    Bytes handle(const CloseRequest& request);
    [[nodiscard]] bool owns_chunk(const FileId& file, std::uint64_t offset) const;
    DataAnswer data_answer(const FileId& file, std::uint32_t bytes);
    Bytes handle(const ReadRequest& request);
    Bytes handle(const WriteRequest& request);
    Bytes handle(const ExtendRequest& request);
    Bytes handle(const ReserveRequest& request);
    void cut(Node& file, std::uint64_t size);
    Bytes handle(const SetAttributesRequest& request);
    Bytes handle(const RemoveRequest& request);
    Bytes handle(const ListRequest& request);
    Bytes handle(const RenameRequest& request);
    Bytes handle(const LinkRequest& request);
    Bytes handle(const ReadLinkRequest& request);
    Bytes handle(const StatFsRequest& /*request*/);
    Bytes handle(const SyncRequest& /*request*/);
    Bytes handle(const CensusRequest& request);
    Bytes handle(const ScrubRequest& request);

    const View& view_;
    std::map<FileId, Node> nodes_;
    std::uint64_t serial_ = 1;
    ShardNumber shard_ = 0;
    Memory memory_{};
};

}  // namespace cairn::fs
