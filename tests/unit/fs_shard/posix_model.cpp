#include "tests/unit/fs_shard/posix_model.hpp"

#include <algorithm>
#include <cerrno>
#include <type_traits>

#include "fs/rules/names.hpp"
#include "fs/shard/shard.hpp"
#include "fs/store/checksum.hpp"

namespace cairn::fs {

namespace {

ModelOutcome failed(int error) {
    ModelOutcome outcome;
    outcome.error = error;
    return outcome;
}

ModelOutcome with_attributes(const ModelNode& node) {
    ModelOutcome outcome;
    outcome.attributes = node.attributes;
    return outcome;
}

}  // namespace

PosixModel::PosixModel(std::uint32_t chunk_bytes, const Attributes& root) : chunk_bytes_(chunk_bytes) {
    nodes_[kRoot].attributes = root;
}

template <class Request>
ModelOutcome PosixModel::again(const ModelCall& call, const Request& request, const Kept& kept) {
    if constexpr (std::is_same_v<Request, CreateRequest>) {
        const ModelNode* const directory = node(request.directory);
        const auto child = directory == nullptr ? std::map<std::string, FileId>::const_iterator{}
                                                : directory->names.find(std::string(request.name));
        if (directory == nullptr || child == directory->names.end() || child->second != kept.made) {
            return failed(ENOENT);
        }
        return found(call, kept.made, request.rights, true);
    } else if constexpr (std::is_same_v<Request, LinkRequest>) {
        return does(call, StatRequest{request.file});
    } else if constexpr (std::is_same_v<Request, ReserveRequest>) {
        const ModelNode* const file = node(request.file);
        ModelOutcome outcome = failed(file == nullptr ? ESTALE : 0);
        if (file != nullptr) {
            outcome.data = {0, true, kept.offset, file->attributes.size, file->attributes.generation};
        }
        return outcome;
    }
    return {};
}

ModelOutcome PosixModel::run(const ModelCall& call, const Request& request) {
    return std::visit(
        [&](const auto& asked) {
            if constexpr (kIsMadeOnce<std::remove_cvref_t<decltype(asked)>>) {
                const auto kept = kept_.find({call.client, call.slot});
                if (kept != kept_.end() && kept->second.sequence == call.sequence) {
                    return again(call, asked, kept->second);
                }
            }
            return does(call, asked);
        },
        request);
}

PosixModel::Found PosixModel::directory(const ModelCall& call, const FileId& id, std::string_view name,
                                        std::uint32_t wanted) {
    if (const int error = judge_name(name); error != 0) {
        return {error};
    }
    ModelNode* const found = node(id);
    if (found == nullptr || found->attributes.links == 0) {
        return {ENOENT};
    }
    if (!found->is_directory()) {
        return {ENOTDIR};
    }
    return {judge_access(found->owned(), call.who, wanted), found};
}

int PosixModel::judge_kind(const ModelNode& node, std::uint32_t rights) {
    if ((rights & ~(kMayRead | kMayWrite)) != 0) {
        return EINVAL;
    }
    return node.is_link() ? ELOOP : node.is_directory() && (rights & kMayWrite) != 0 ? EISDIR : 0;
}

ModelOutcome PosixModel::found(const ModelCall& call, const FileId& id, std::uint32_t rights, bool was_made) {
    const ModelNode& child = nodes_.at(id);
    ModelOutcome outcome = with_attributes(child);
    outcome.was_made = was_made;
    outcome.bytes = child.target;
    if (!child.is_link() && rights != 0) {
        int error = judge_kind(child, rights);
        error = error != 0 || was_made ? error : judge_access(child.owned(), call.who, rights);
        if (error != 0) {
            return failed(error);
        }
        ++opens_[id][call.client];
        outcome.is_opened = true;
    }
    return outcome;
}

ModelOutcome PosixModel::does(const ModelCall& call, const WalkRequest& request) {
    const Found in = directory(call, request.directory, request.name, kMayExecute);
    if (in.error != 0) {
        return failed(in.error);
    }
    const auto child = in.node->names.find(std::string(request.name));
    return child == in.node->names.end() ? failed(ENOENT) : found(call, child->second, request.rights, false);
}

FileId PosixModel::make(const ModelCall& call, const CreateRequest& request, ModelNode& directory) {
    const FileId id{++made_, 0};
    const Owned owned = made_in(directory.owned(), call.who, request.mode);
    ModelNode made;
    made.attributes = {id, owned.mode, owned.uid, owned.gid, 1, request.target.size(), 0};
    made.attributes.modified_ns = made.attributes.changed_ns = call.wall_ns;
    made.attributes.accessed_ns = made.attributes.born_ns = call.wall_ns;
    made.target = request.target;
    made.parent = made.is_directory() ? request.directory : FileId{};
    directory.names[std::string(request.name)] = id;
    touch(call, directory);
    nodes_[id] = made;
    return id;
}

ModelOutcome PosixModel::does(const ModelCall& call, const CreateRequest& request) {
    const Found in = directory(call, request.directory, request.name, kMayExecute);
    if (in.error != 0) {
        return failed(in.error);
    }
    const auto there = in.node->names.find(std::string(request.name));
    if (there != in.node->names.end()) {
        return request.exclusive ? failed(EEXIST) : found(call, there->second, request.rights, false);
    }
    if (const int error = judge_access(in.node->owned(), call.who, kMayWrite); error != 0) {
        return failed(error);
    }
    if ((request.mode & 0170000U) == 0040000U && (request.rights & kMayWrite) != 0) {
        return failed(EINVAL);
    }
    const FileId id = make(call, request, *in.node);
    keep(call, id);
    return found(call, id, request.rights, true);
}

ModelOutcome PosixModel::does(const ModelCall& /*call*/, const StatRequest& request) {
    const ModelNode* const file = node(request.file);
    return file == nullptr ? failed(ESTALE) : with_attributes(*file);
}

ModelOutcome PosixModel::does(const ModelCall& call, const OpenRequest& request) {
    const ModelNode* const file = node(request.file);
    int error = file == nullptr ? ESTALE : judge_kind(*file, request.rights);
    error = error != 0 ? error : judge_access(file->owned(), call.who, request.rights);
    if (error != 0) {
        return failed(error);
    }
    ++opens_[request.file][call.client];
    ModelOutcome outcome = with_attributes(*file);
    outcome.is_opened = true;
    return outcome;
}

ModelOutcome PosixModel::does(const ModelCall& call, const CloseRequest& request) {
    const auto held = opens_.find(request.file);
    if (held == opens_.end() || !held->second.contains(call.client)) {
        return failed(EBADF);
    }
    if (--held->second[call.client] == 0) {
        held->second.erase(call.client);
    }
    if (held->second.empty()) {
        opens_.erase(held);
    }
    go_if_orphan(request.file);
    return {};
}

ModelOutcome PosixModel::does(const ModelCall& /*call*/, const ReadLinkRequest& request) {
    const ModelNode* const file = node(request.file);
    ModelOutcome outcome = failed(file == nullptr ? ESTALE : file->is_link() ? 0 : EINVAL);
    outcome.bytes = outcome.error == 0 ? file->target : "";
    return outcome;
}

void PosixModel::go_if_orphan(const FileId& file) {
    const ModelNode* const left = node(file);
    if (left != nullptr && left->attributes.links == 0 && !opens_.contains(file)) {
        nodes_.erase(file);
    }
}

void PosixModel::name(const FileId& made, const FileId& id) {
    // It may be gone again.
    if (auto moved = nodes_.extract(made); !moved.empty()) {
        moved.key() = id;
        moved.mapped().attributes.id = id;
        nodes_.insert(std::move(moved));
    }
    for (auto& [each, node] : nodes_) {
        node.parent = node.parent == made ? id : node.parent;
        for (auto& [text, child] : node.names) {
            child = child == made ? id : child;
        }
    }
    for (auto& [client, kept] : kept_) {
        kept.made = kept.made == made ? id : kept.made;
    }
    if (auto held = opens_.extract(made); !held.empty()) {
        held.key() = id;
        opens_.insert(std::move(held));
    }
}

void PosixModel::forget(std::uint64_t client) {
    for (auto& [file, clients] : opens_) {
        clients.erase(client);
    }
    std::erase_if(opens_, [](const auto& held) { return held.second.empty(); });
    forget_answers(client);
    drop_orphans();
}

void PosixModel::forget_answers(std::uint64_t client) {
    std::erase_if(kept_, [&](const auto& kept) { return kept.first.first == client; });
}

void PosixModel::drop_orphans() {
    std::erase_if(nodes_,
                  [&](const auto& each) { return each.second.attributes.links == 0 && !opens_.contains(each.first); });
}

std::vector<std::pair<FileId, std::uint64_t>> PosixModel::opens() const {
    std::vector<std::pair<FileId, std::uint64_t>> all;
    for (const auto& [file, clients] : opens_) {
        for (const auto& [client, opens] : clients) {
            all.insert(all.end(), opens, {file, client});
        }
    }
    return all;
}

std::string line_of(const std::string& path, const Attributes& attributes, std::string_view target,
                    std::uint32_t checksum, bool with_times) {
    std::string line = path;
    for (const std::uint64_t number :
         {std::uint64_t{attributes.mode}, std::uint64_t{attributes.uid}, std::uint64_t{attributes.gid},
          std::uint64_t{attributes.links}, attributes.size, attributes.generation, std::uint64_t{checksum}}) {
        line += " " + std::to_string(number);
    }
    if (with_times) {
        line += " times " + std::to_string(attributes.modified_ns) + " " + std::to_string(attributes.changed_ns);
    }
    return line + " " + std::to_string(attributes.accessed_ns) + " " + std::to_string(attributes.born_ns) + " " +
           std::string(target);
}

std::vector<std::string> PosixModel::facts(bool with_directories_times) const {
    std::vector<std::string> lines;
    const auto add = [&](const std::string& path, const ModelNode& node) {
        const std::uint32_t checksum =
            crc32c(0, {reinterpret_cast<const std::uint8_t*>(node.data->data()), node.data->size()});
        lines.push_back(
            line_of(path, node.attributes, node.target, checksum, with_directories_times || !node.is_directory()));
    };
    std::vector<std::pair<std::string, FileId>> left{{"/", kRoot}};
    while (!left.empty()) {
        const auto [path, id] = left.back();
        left.pop_back();
        const ModelNode& node = nodes_.at(id);
        add(path, node);
        for (const auto& [name, child] : node.names) {
            left.emplace_back(path + name + (nodes_.at(child).is_directory() ? "/" : ""), child);
        }
    }
    for (const auto& [id, node] : nodes_) {
        if (node.attributes.links == 0) {
            add("orphan", node);
        }
    }
    for (const auto& [client, kept] : kept_) {
        lines.push_back("answer " + std::to_string(client.first) + " " + std::to_string(client.second) + " " +
                        std::to_string(kept.sequence));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

}  // namespace cairn::fs
