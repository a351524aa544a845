// The required behaviour of a file system, in memory and without delay.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/rules/access.hpp"

namespace cairn::fs {

// The caller of a call, and its numbers.
struct ModelCall {
    std::uint64_t client = 0;
    std::uint32_t slot = 0;
    std::uint32_t sequence = 0;
    Credentials who{};
    std::span<const std::uint8_t> data{};
    std::int64_t wall_ns = 0;
};

struct ModelNode {
    Attributes attributes{};
    std::string target{};
    FileId parent{};                                                                  // of a directory
    std::map<std::string, FileId> names{};                                            // of a directory
    std::shared_ptr<const std::string> data = std::make_shared<const std::string>();  // of a file

    [[nodiscard]] Owned owned() const { return {attributes.mode, attributes.uid, attributes.gid}; }
    [[nodiscard]] std::uint32_t type() const { return attributes.mode & 0170000U; }
    [[nodiscard]] bool is_directory() const { return type() == 0040000U; }
    [[nodiscard]] bool is_file() const { return type() == 0100000U; }
    [[nodiscard]] bool is_link() const { return type() == 0120000U; }
};

// The required outcome of a call.
struct ModelOutcome {
    int error = 0;
    std::optional<Attributes> attributes{};  // if the answer has any
    bool is_opened = false;
    bool was_made = false;
    std::string bytes{};  // of a file, or a link's target
    DataAnswer data{};
};

// The whole file system as a value: a copy is the state at a moment.
class PosixModel {
public:
    PosixModel(std::uint32_t chunk_bytes, const Attributes& root);

    ModelOutcome run(const ModelCall& call, const Request& request);
    // Gives a file of the model the id that the shard gave it.
    void name(const FileId& made, const FileId& id);
    void add_grant(const FileId& file, std::uint64_t client, const Grant& grant) {
        grants_.emplace(file, client, grant.rights, grant.proof);
    }
    // Returns to an earlier state. Ids and grants given since are not given again.
    void go_back(const PosixModel& moment) {
        auto grants = std::move(grants_);
        const std::uint64_t made = made_;
        *this = moment;
        grants_ = std::move(grants);
        made_ = made;
    }
    // Closes all files.
    void close_all() { opens_.clear(); }
    void forget(std::uint64_t client);
    void forget_answers(std::uint64_t client);
    // Drops files without names that no client has open.
    void drop_orphans();

    // Returns one line for each file and each kept answer, in order.
    [[nodiscard]] std::vector<std::string> facts(bool with_directories_times) const;
    [[nodiscard]] const std::map<FileId, ModelNode>& nodes() const { return nodes_; }
    [[nodiscard]] std::map<FileId, ModelNode>& nodes() { return nodes_; }
    [[nodiscard]] bool is_open(const FileId& file) const { return opens_.contains(file); }
    [[nodiscard]] std::vector<std::pair<FileId, std::uint64_t>> opens() const;
    // Returns whether a file was made in the model and has no id of the shard yet.
    [[nodiscard]] static bool is_unnamed(const FileId& id) { return id.random == 0; }

private:
    struct Kept {
        std::uint32_t sequence = 0;
        FileId made{};
        std::uint64_t offset = 0;
    };
    struct Found {
        int error = 0;
        ModelNode* node = nullptr;
    };
    template <class Request>
    static constexpr bool kIsMadeOnce =
        std::is_same_v<Request, CreateRequest> || std::is_same_v<Request, RemoveRequest> ||
        std::is_same_v<Request, RenameRequest> || std::is_same_v<Request, LinkRequest> ||
        std::is_same_v<Request, ReserveRequest>;

    ModelOutcome does(const ModelCall& call, const WalkRequest& request);
    ModelOutcome does(const ModelCall& call, const CreateRequest& request);
    ModelOutcome does(const ModelCall& call, const StatRequest& request);
    ModelOutcome does(const ModelCall& call, const OpenRequest& request);
    ModelOutcome does(const ModelCall& call, const CloseRequest& request);
    ModelOutcome does(const ModelCall& call, const ReadRequest& request);
    ModelOutcome does(const ModelCall& call, const WriteRequest& request);
    ModelOutcome does(const ModelCall& call, const ExtendRequest& request);
    ModelOutcome does(const ModelCall& call, const ReserveRequest& request);
    ModelOutcome does(const ModelCall& call, const SetAttributesRequest& request);
    ModelOutcome does(const ModelCall& call, const RemoveRequest& request);
    ModelOutcome does(const ModelCall& call, const RenameRequest& request);
    ModelOutcome does(const ModelCall& call, const LinkRequest& request);
    ModelOutcome does(const ModelCall& call, const ReadLinkRequest& request);
    template <class Other>
    ModelOutcome does(const ModelCall& /*call*/, const Other& /*request*/) {
        return {};
    }
    template <class Request>
    ModelOutcome again(const ModelCall& call, const Request& request, const Kept& kept);

    [[nodiscard]] ModelNode* node(const FileId& id) {
        const auto found = nodes_.find(id);
        return found == nodes_.end() ? nullptr : &found->second;
    }
    [[nodiscard]] bool may(const ModelCall& call, const FileId& file, const Grant& grant, std::uint32_t rights) const {
        return (grant.rights & rights) == rights && grants_.contains({file, call.client, grant.rights, grant.proof});
    }
    Found directory(const ModelCall& call, const FileId& id, std::string_view name, std::uint32_t wanted);
    [[nodiscard]] static int judge_kind(const ModelNode& node, std::uint32_t rights);
    ModelOutcome found(const ModelCall& call, const FileId& id, std::uint32_t rights, bool was_made);
    FileId make(const ModelCall& call, const CreateRequest& request, ModelNode& directory);
    int judge_piece(const ModelCall& call, const FileId& file, const Grant& grant, std::uint32_t wanted,
                    std::uint64_t offset, std::uint32_t bytes, std::uint32_t at);
    int judge_gone(const ModelCall& call, const ModelNode& directory, const FileId& child, bool is_directory);
    int judge_move(const ModelCall& call, const RenameRequest& request, const ModelNode& from, const ModelNode& to);
    bool is_within(FileId directory, const FileId& outer);
    int set_size(const ModelCall& call, const SetAttributesRequest& request, ModelNode& node);
    void take_name(const ModelCall& call, const FileId& child);
    void go_if_orphan(const FileId& file);
    void keep(const ModelCall& call, const FileId& made = {}, std::uint64_t offset = 0) {
        kept_[{call.client, call.slot}] = {call.sequence, made, offset};
    }
    static void touch(const ModelCall& call, ModelNode& directory) {
        directory.attributes.modified_ns = directory.attributes.changed_ns = call.wall_ns;
    }
    static void written(const ModelCall& call, ModelNode& node, std::uint64_t end);
    static void resize(ModelNode& node, std::uint64_t size);

    std::uint32_t chunk_bytes_;
    std::map<FileId, ModelNode> nodes_;
    std::map<FileId, std::map<std::uint64_t, std::uint32_t>> opens_;  // by file and client
    std::set<std::tuple<FileId, std::uint64_t, std::uint32_t, std::uint64_t>> grants_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, Kept> kept_;  // by client and slot
    std::uint64_t made_ = 0;
};

// Returns a line of facts() for a file.
[[nodiscard]] std::string line_of(const std::string& path, const Attributes& attributes, std::string_view target,
                                  std::uint32_t checksum, bool with_times);

}  // namespace cairn::fs
