// Changes of names, attributes and data in the model.
#include <algorithm>
#include <cerrno>

#include "fs/rules/names.hpp"
#include "fs/shard/shard.hpp"
#include "tests/unit/fs_shard/posix_model.hpp"

namespace cairn::fs {

namespace {

ModelOutcome refused(int error) {
    ModelOutcome outcome;
    outcome.error = error;
    return outcome;
}

ModelOutcome with_data(const DataAnswer& data) {
    ModelOutcome outcome;
    outcome.data = data;
    return outcome;
}

}  // namespace

int PosixModel::judge_piece(const ModelCall& call, const FileId& file, const Grant& grant, std::uint32_t wanted,
                            std::uint64_t offset, std::uint32_t bytes, std::uint32_t at) {
    if (!may(call, file, grant, wanted)) {
        return EBADF;
    }
    const bool is_piece = bytes != 0 && offset / chunk_bytes_ == (offset + bytes - 1) / chunk_bytes_ &&
                          std::uint64_t{at} + bytes <= call.data.size();
    return !is_piece ? EINVAL : node(file) == nullptr ? ESTALE : 0;
}

ModelOutcome PosixModel::does(const ModelCall& call, const ReadRequest& request) {
    if (const int error =
            judge_piece(call, request.file, request.grant, kMayRead, request.offset, request.bytes, request.at);
        error != 0) {
        return refused(error);
    }
    const ModelNode& file = nodes_.at(request.file);
    ModelOutcome outcome;
    if (request.offset < file.data->size()) {
        outcome.bytes = file.data->substr(request.offset, request.bytes);
    }
    outcome.data = {static_cast<std::uint32_t>(outcome.bytes.size()), true, 0, file.attributes.size,
                    file.attributes.generation};
    return outcome;
}

void PosixModel::written(const ModelCall& call, ModelNode& node, std::uint64_t end) {
    node.attributes.modified_ns = node.attributes.changed_ns = call.wall_ns;
    if (!call.who.is_superuser()) {
        node.attributes.mode = mode_without_ids(node.attributes.mode);
    }
    if (end > node.attributes.size) {
        resize(node, end);
    }
}

void PosixModel::resize(ModelNode& node, std::uint64_t size) {
    std::string data = *node.data;
    data.resize(size);
    node.data = std::make_shared<const std::string>(std::move(data));
    node.attributes.size = size;
}

ModelOutcome PosixModel::does(const ModelCall& call, const WriteRequest& request) {
    int error = judge_piece(call, request.file, request.grant, kMayWrite, request.offset, request.bytes, request.at);
    ModelNode* const file = node(request.file);
    error = error == 0 && file->attributes.generation != request.generation ? kErrorOtherGeneration : error;
    if (error != 0) {
        return refused(error);
    }
    written(call, *file, request.offset + request.bytes);
    std::string data = *file->data;
    data.replace(request.offset, request.bytes,
                 std::string(reinterpret_cast<const char*>(call.data.data()) + request.at, request.bytes));
    file->data = std::make_shared<const std::string>(std::move(data));
    return with_data({request.bytes, true, 0, file->attributes.size, file->attributes.generation});
}

ModelOutcome PosixModel::does(const ModelCall& call, const ExtendRequest& request) {
    ModelNode* const file = node(request.file);
    const int error = file == nullptr                                      ? ESTALE
                      : !may(call, request.file, request.grant, kMayWrite) ? EBADF
                      : request.generation != file->attributes.generation  ? kErrorOtherGeneration
                                                                           : 0;
    if (error != 0) {
        return refused(error);
    }
    written(call, *file, request.end);
    return with_data({0, true, 0, file->attributes.size, file->attributes.generation});
}

ModelOutcome PosixModel::does(const ModelCall& call, const ReserveRequest& request) {
    ModelNode* const file = node(request.file);
    if (file == nullptr || !may(call, request.file, request.grant, kMayWrite)) {
        return refused(file == nullptr ? ESTALE : EBADF);
    }
    const std::uint64_t offset = file->attributes.size;
    written(call, *file, offset + request.bytes);
    keep(call, {}, offset);
    return with_data({0, true, offset, file->attributes.size, file->attributes.generation});
}

int PosixModel::set_size(const ModelCall& call, const SetAttributesRequest& request, ModelNode& node) {
    if (!node.is_file()) {
        return node.is_directory() ? EISDIR : EINVAL;
    }
    if (request.grant.rights != 0 ? !may(call, request.file, request.grant, kMayWrite)
                                  : judge_access(node.owned(), call.who, kMayWrite) != 0) {
        return request.grant.rights != 0 ? EINVAL : EACCES;
    }
    node.attributes.generation += request.size < node.attributes.size ? 1U : 0U;
    written(call, node, 0);
    resize(node, request.size);
    return 0;
}

namespace {

int set_owner(const ModelCall& call, const SetAttributesRequest& request, Attributes& attributes) {
    const Owned owned{attributes.mode, attributes.uid, attributes.gid};
    const std::uint32_t uid = (request.what & kSetUid) != 0 ? request.uid : attributes.uid;
    const std::uint32_t gid = (request.what & kSetGid) != 0 ? request.gid : attributes.gid;
    const int error = judge_chown(owned, call.who, uid, gid);
    if (error == 0) {
        attributes.uid = uid;
        attributes.gid = gid;
        const bool is_file = (attributes.mode & 0170000U) == 0100000U;
        attributes.mode = is_file ? mode_without_ids(attributes.mode) : attributes.mode;
    }
    return error;
}

int set_times(const ModelCall& call, const SetAttributesRequest& request, Attributes& attributes) {
    const Owned owned{attributes.mode, attributes.uid, attributes.gid};
    const int not_owner = judge_owner(owned, call.who);
    if ((request.what & (kSetAccessed | kSetModified)) != 0 && not_owner != 0) {
        return not_owner;
    }
    if ((request.what & kSetTimesNow) != 0) {
        if (not_owner != 0 && judge_access(owned, call.who, kMayWrite) != 0) {
            return EACCES;
        }
        attributes.accessed_ns = attributes.modified_ns = call.wall_ns;
    }
    attributes.accessed_ns = (request.what & kSetAccessed) != 0 ? request.accessed_ns : attributes.accessed_ns;
    attributes.modified_ns = (request.what & kSetModified) != 0 ? request.modified_ns : attributes.modified_ns;
    return 0;
}

}  // namespace

ModelOutcome PosixModel::does(const ModelCall& call, const SetAttributesRequest& request) {
    ModelNode* const file = node(request.file);
    if (file == nullptr) {
        return refused(ESTALE);
    }
    ModelNode changed = *file;
    Attributes& attributes = changed.attributes;
    int error = (request.what & (kSetUid | kSetGid)) != 0 ? set_owner(call, request, attributes) : 0;
    if (error == 0 && (request.what & kSetMode) != 0) {
        error = judge_owner(changed.owned(), call.who);
        attributes.mode = error == 0 ? mode_after_chmod(changed.owned(), call.who, request.mode) : attributes.mode;
    }
    error = error != 0 ? error : set_times(call, request, attributes);
    if (error == 0 && (request.what & kSetSize) != 0) {
        error = set_size(call, request, changed);
    }
    if (error != 0) {
        return refused(error);
    }
    attributes.changed_ns = request.what != 0 ? call.wall_ns : attributes.changed_ns;
    *file = changed;
    ModelOutcome outcome;
    outcome.attributes = attributes;
    return outcome;
}

int PosixModel::judge_gone(const ModelCall& call, const ModelNode& directory, const FileId& child, bool is_directory) {
    const ModelNode& gone = nodes_.at(child);
    if (const int error = judge_removal(directory.owned(), gone.owned(), call.who); error != 0) {
        return error;
    }
    if (gone.is_directory() != is_directory) {
        return is_directory ? ENOTDIR : EISDIR;
    }
    return gone.names.empty() ? 0 : ENOTEMPTY;
}

void PosixModel::take_name(const ModelCall& call, const FileId& child) {
    ModelNode& node = nodes_.at(child);
    --node.attributes.links;
    node.attributes.changed_ns = call.wall_ns;
    go_if_orphan(child);
}

ModelOutcome PosixModel::does(const ModelCall& call, const RemoveRequest& request) {
    const Found in = directory(call, request.directory, request.name, kMayExecute | kMayWrite);
    if (in.error != 0) {
        return refused(in.error);
    }
    const auto child = in.node->names.find(std::string(request.name));
    if (child == in.node->names.end()) {
        return refused(ENOENT);
    }
    const FileId id = child->second;
    if (const int error = judge_gone(call, *in.node, id, request.is_directory); error != 0) {
        return refused(error);
    }
    in.node->names.erase(child);
    touch(call, *in.node);
    take_name(call, id);
    keep(call);
    return {};
}

bool PosixModel::is_within(FileId directory, const FileId& outer) {
    while (directory != outer && directory != kRoot) {
        directory = nodes_.at(directory).parent;
    }
    return directory == outer;
}

int PosixModel::judge_move(const ModelCall& call, const RenameRequest& request, const ModelNode& from,
                           const ModelNode& to) {
    const FileId id = from.names.at(std::string(request.name));
    const ModelNode& moved = nodes_.at(id);
    if (const int error = judge_removal(from.owned(), moved.owned(), call.who); error != 0) {
        return error;
    }
    if (moved.is_directory() && request.directory != request.to_directory) {
        if (is_within(request.to_directory, id)) {
            return EINVAL;
        }
        if (const int error = judge_access(moved.owned(), call.who, kMayWrite); error != 0) {
            return error;
        }
    }
    const auto there = to.names.find(std::string(request.to_name));
    return there == to.names.end() ? 0
           : request.no_replace    ? EEXIST
                                   : judge_gone(call, to, there->second, moved.is_directory());
}

ModelOutcome PosixModel::does(const ModelCall& call, const RenameRequest& request) {
    const std::uint32_t wanted = kMayExecute | kMayWrite;
    const int bad_name = judge_name(request.to_name);
    const Found from = directory(call, request.directory, request.name, wanted);
    if (bad_name != 0 || from.error != 0) {
        return refused(bad_name != 0 ? bad_name : from.error);
    }
    const auto child = from.node->names.find(std::string(request.name));
    if (child == from.node->names.end()) {
        return refused(ENOENT);
    }
    if (request.directory == request.to_directory && request.name == request.to_name) {
        return refused(request.no_replace ? EEXIST : 0);
    }
    const Found to = directory(call, request.to_directory, request.to_name, wanted);
    if (to.error != 0) {
        return refused(to.error);
    }
    const FileId id = child->second;
    const auto there = to.node->names.find(std::string(request.to_name));
    if (there != to.node->names.end() && there->second == id && !request.no_replace) {
        return {};
    }
    if (const int error = judge_move(call, request, *from.node, *to.node); error != 0) {
        return refused(error);
    }
    if (there != to.node->names.end()) {
        take_name(call, there->second);
    }
    from.node->names.erase(std::string(request.name));
    to.node->names[std::string(request.to_name)] = id;
    ModelNode& moved = nodes_.at(id);
    moved.parent = moved.is_directory() ? request.to_directory : FileId{};
    moved.attributes.changed_ns = call.wall_ns;
    touch(call, *from.node);
    touch(call, *to.node);
    keep(call);
    return {};
}

ModelOutcome PosixModel::does(const ModelCall& call, const LinkRequest& request) {
    const Found in = directory(call, request.directory, request.name, kMayExecute | kMayWrite);
    if (in.error != 0) {
        return refused(in.error);
    }
    ModelNode* const file = node(request.file);
    const int error = in.node->names.contains(std::string(request.name)) ? EEXIST
                      : file == nullptr || file->attributes.links == 0   ? ENOENT
                      : file->is_directory()                             ? EPERM
                                                                         : 0;
    if (error != 0) {
        return refused(error);
    }
    ++file->attributes.links;
    file->attributes.changed_ns = call.wall_ns;
    in.node->names[std::string(request.name)] = request.file;
    touch(call, *in.node);
    keep(call);
    ModelOutcome outcome;
    outcome.attributes = file->attributes;
    return outcome;
}

}  // namespace cairn::fs
