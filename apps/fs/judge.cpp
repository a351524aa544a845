#include "apps/fs/judge.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>

namespace cairn::fstool {

namespace {

using fs::CountedFile;
using fs::FileId;

constexpr std::size_t kDeepest = 100'000;  // limit of directories inside each other

[[nodiscard]] const char* kind_of(std::uint32_t mode) noexcept {
    return S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symbolic link" : S_ISREG(mode) ? "file" : "thing";
}

class Judge {
public:
    Judge(const Counted& counted, const fs::View& view)
        : counted_(counted), view_(view), root_(view.welcome().root), paths_(counted.names, root_) {}

    std::vector<Finding> judge() {
        take_files();
        judge_names();
        judge_files();
        judge_loops();
        judge_chunks();
        std::ranges::sort(findings_, {}, &Finding::text);
        return std::move(findings_);
    }

private:
    struct File {
        CountedFile facts{};
        std::uint32_t names = 0;
    };

    void say(std::string key, std::string text) { findings_.push_back({std::move(key), std::move(text)}); }

    void take_files() {
        for (const auto& [facts, shard] : counted_.files) {
            if (facts.id.home_slot() >= fs::kSlots || view_.owner(facts.id.home_slot()) != shard) {
                say("home" + text_of(facts.id) + std::to_string(shard),
                    fmt::format("{}: shard {} has it, which is not its home", paths_.of(facts.id), shard));
            } else {
                files_[facts.id] = {facts};
            }
        }
        if (!files_.contains(root_)) {
            say("root", "/: the root directory is not there");
        }
    }
    void judge_names() {
        const Counted::Name* last = nullptr;
        for (const Counted::Name& name : counted_.names) {
            const bool is_same =
                last != nullptr && last->text == name.text && last->facts.directory == name.facts.directory;
            if (!is_same) {
                judge_name(name);
            }
            last = &name;
        }
    }
    void judge_name(const Counted::Name& name) {
        const auto key = [&name](const char* what) { return what + text_of(name.facts.directory) + name.text; };
        const std::string path = paths_.of(name);
        if (const fs::ShardNumber owner = view_.owner(view_.slot_of(name.facts.directory, name.text));
            owner != name.shard) {
            say(key("place"), fmt::format("{}: shard {} has the name, which is shard {}'s", path, name.shard, owner));
            return;
        }
        const auto directory = files_.find(name.facts.directory);
        if (directory == files_.end() || !S_ISDIR(directory->second.facts.mode)) {
            say(key("in"), fmt::format("{}: a name in no directory", path));
        }
        const auto child = files_.find(name.facts.child);
        if (child == files_.end()) {
            say(key("none"), fmt::format("{}: names a {} that is not there, {}", path, kind_of(name.facts.mode),
                                         text_of(name.facts.child)));
            return;
        }
        ++child->second.names;
        const CountedFile& facts = child->second.facts;
        if ((facts.mode & S_IFMT) != (name.facts.mode & S_IFMT)) {
            say(key("type"),
                fmt::format("{}: named as a {}, and is a {}", path, kind_of(name.facts.mode), kind_of(facts.mode)));
        } else if (S_ISDIR(facts.mode) && facts.parent != name.facts.directory) {
            say(key("parent"), fmt::format("{}: a directory that believes to be in {}", path, paths_.of(facts.parent)));
        }
    }
    void judge_files() {
        for (const auto& [id, file] : files_) {
            const CountedFile& facts = file.facts;
            const std::uint32_t wanted = id == root_ ? 1 : file.names;
            const bool goes_later = facts.links == 0 && file.names == 0 && facts.is_open;
            if (facts.links == 0 && file.names == 0 && !goes_later) {
                say("nameless" + text_of(id), fmt::format("{}: a {} of {} bytes without a name that nobody has open",
                                                          paths_.of(id), kind_of(facts.mode), facts.size));
            } else if (facts.links != wanted) {
                say("links" + text_of(id), fmt::format("{}: a {} with {} names that counts {}", paths_.of(id),
                                                       kind_of(facts.mode), wanted, facts.links));
            }
        }
    }
    // Finds directories whose parents do not lead to the root.
    void judge_loops() {
        std::unordered_set<FileId, fs::IdHash> sound{root_};
        for (const auto& [id, file] : files_) {
            if (!S_ISDIR(file.facts.mode) || file.names == 0) {
                continue;
            }
            std::vector<FileId> way;
            std::unordered_set<FileId, fs::IdHash> seen;
            FileId at = id;
            while (!sound.contains(at) && files_.contains(at) && seen.insert(at).second) {
                way.push_back(at);
                at = files_[at].facts.parent;
            }
            if (seen.contains(at)) {
                say("loop" + text_of(id), fmt::format("directory {}: is in itself", text_of(id)));
            }
            sound.insert(way.begin(), way.end());  // reported once
        }
    }
    void judge_chunks() {
        for (const auto& [facts, shard] : counted_.chunks) {
            const std::string key = text_of(facts.file) + '.' + std::to_string(facts.index);
            const FileId& id = facts.file;
            const bool is_placed = id.home_slot() < fs::kSlots &&
                                   view_.owner(fs::Placement::slot_of_chunk(id.home_slot(), facts.index)) == shard;
            const auto file = files_.find(id);
            const std::string what =
                fmt::format("{}: chunk {} at shard {} ({} blocks)", paths_.of(id), facts.index, shard, facts.blocks);
            if (!is_placed) {
                say("stray" + key + std::to_string(shard), what + " is another shard's");
            } else if (file == files_.end()) {
                say("orphan" + key, what + " is of no file");
            } else if (std::uint64_t{facts.index} * view_.chunk_bytes() >= file->second.facts.size) {
                say("beyond" + key, what + " lies beyond the end");
            }
        }
    }

    const Counted& counted_;
    const fs::View& view_;
    const FileId root_;
    const Paths paths_;
    std::unordered_map<FileId, File, fs::IdHash> files_;
    std::vector<Finding> findings_;
};

}  // namespace

std::string text_of(const FileId& id) {
    return fmt::format("{:016x}-{:016x}", id.place, id.random);
}

std::string shown(std::string_view name) {
    std::string text;
    for (const char byte : name) {
        const auto value = static_cast<unsigned char>(byte);
        text += value < 0x20 || value == 0x7f || value == '\\' ? fmt::format("\\x{:02x}", value) : std::string(1, byte);
    }
    return text;
}

Paths::Paths(const std::vector<Counted::Name>& names, const FileId& root) : root_(root) {
    for (const Counted::Name& name : names) {
        by_child_.try_emplace(name.facts.child, &name);
    }
}

std::string Paths::of(const FileId& id) const {
    std::vector<const Counted::Name*> way;
    FileId at = id;
    for (; at != root_ && way.size() != kDeepest; at = way.back()->facts.directory) {
        const auto name = by_child_.find(at);
        if (name == by_child_.end()) {
            break;
        }
        way.push_back(name->second);
    }
    if (at != root_) {
        return "file " + text_of(id);
    }
    std::string path = way.empty() ? "/" : "";
    for (auto name = way.rbegin(); name != way.rend(); ++name) {
        path += '/' + shown((*name)->text);
    }
    return path;
}

std::string Paths::of(const Counted::Name& name) const {
    const std::string directory = of(name.facts.directory);
    return directory + (directory.ends_with('/') ? "" : "/") + shown(name.text);
}

std::vector<Finding> judge(const Counted& counted, const fs::View& view) {
    return Judge(counted, view).judge();
}

}  // namespace cairn::fstool
