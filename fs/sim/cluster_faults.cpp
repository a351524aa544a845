#include "fs/sim/cluster_faults.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "fs/shard/attributes.hpp"

namespace cairn::fs {

namespace {

class Inspection {
public:
    Inspection(ShardCluster& cluster, Strays strays) : cluster_(cluster), strays_(strays) {}

    std::vector<std::string> run() {
        for (ShardNumber number = 0; number != cluster_.size(); ++number) {
            take_files(number);
        }
        for (ShardNumber number = 0; number != cluster_.size(); ++number) {
            take_names(number);
            take_chunks(number);
        }
        judge_links();
        judge_tree();
        return std::move(faults_);
    }

private:
    void expect(bool holds, const std::string& fault) {
        if (!holds) {
            faults_.push_back(fault);
        }
    }
    [[nodiscard]] static std::string text(const FileId& id) { return fmt::format("{:x}:{:x}", id.place, id.random); }

    void take_files(ShardNumber number) {
        const Store& store = cluster_.store(number);
        store.check();
        store.tables().intents().for_each([&](std::uint64_t /*number*/, const IntentState& intent) {
            expect(false, fmt::format("shard {}: an intent of kind {} is left", number, intent.said.at(0)));
        });
        store.tables().inodes().for_each([&](const FileId& id, const InodeState& state) {
            expect(cluster_.home_of(id) == number, text(id) + " is not at its home");
            files_[id] = state.inode;
            if (const std::optional<FileId> parent = parent_of(state); parent && id != kRoot) {
                parents_[id] = *parent;
            }
        });
    }
    void take_names(ShardNumber number) {
        cluster_.store(number).tables().directories().for_each([&](const FileId& directory, const Names& names) {
            expect(files_.contains(directory), "names of no directory: " + text(directory));
            for (const auto& [hash, named] : names) {
                take_name(number, directory, *named);
            }
        });
    }
    void take_name(ShardNumber number, const FileId& directory, const NamedState& named) {
        const std::string name(named.name());
        const FileId& child = named.state.child;
        expect(cluster_.owner_of_name(directory, name) == number, name + " is at another shard");
        ++names_[child];
        const auto file = files_.find(child);
        expect(file != files_.end(), name + " names no file");
        if (file == files_.end()) {
            return;
        }
        expect(type_of(file->second.mode) == type_of(named.state.mode), name + " names a file of another type");
        expect(!is_directory(named.state.mode) || parents_[child] == directory, name + " is in another directory");
    }
    void take_chunks(ShardNumber number) {
        cluster_.store(number).tables().chunks().for_each([&](const ChunkId& id, const ChunkState& /*unused*/) {
            const std::string chunk = fmt::format("chunk {} of {}", id.index, text(id.file));
            expect(cluster_.owner_of_chunk(id.file, id.index) == number, chunk + " is at another shard");
            const auto file = files_.find(id.file);
            expect(file != files_.end(), chunk + ", which is no file");
            const std::uint64_t begin = std::uint64_t{id.index} * cluster_.store(number).chunk_bytes();
            expect(strays_ == Strays::BeyondTheEnd || file == files_.end() || begin < file->second.size,
                   chunk + " is beyond the end");
        });
    }
    void judge_links() {
        for (const auto& [id, inode] : files_) {
            const std::uint32_t names = id == kRoot ? 1 : names_[id];
            expect(inode.links == names,
                   fmt::format("{} {} has {} names and counts {}", is_directory(inode.mode) ? "directory" : "file",
                               text(id), names, inode.links));
        }
    }
    void judge_tree() {
        for (const auto& [id, first] : parents_) {
            std::set<FileId> seen{id};
            for (FileId at = first; at != kRoot && parents_.contains(at); at = parents_[at]) {
                if (!seen.insert(at).second) {
                    expect(false, text(id) + " is in itself");
                    break;
                }
            }
        }
    }

    ShardCluster& cluster_;
    Strays strays_;
    std::map<FileId, Inode> files_;
    std::map<FileId, FileId> parents_;
    std::map<FileId, std::uint32_t> names_;
    std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults_of(ShardCluster& cluster, Strays strays) {
    return Inspection(cluster, strays).run();
}

}  // namespace cairn::fs
