// The content of a simulated client's own directory.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fs/rules/ids.hpp"

namespace cairn::fs {

struct SimFile {
    FileId id{};
    std::uint32_t links = 1;
    std::string content{};
};

// A value: a copy keeps the state of one moment. Two names of one file share the file.
struct SimTree {
    static constexpr std::uint32_t kDirectories = 3;  // the client's own, and two in it

    using Name = std::pair<std::uint32_t, std::string>;  // a directory's number, and a name in it
    std::array<std::optional<FileId>, kDirectories> directories{};
    std::map<Name, std::shared_ptr<const SimFile>> files{};

    [[nodiscard]] const SimFile* find(const Name& name) const {
        const auto found = files.find(name);
        return found == files.end() ? nullptr : found->second.get();
    }
    // Changes a file under all of its names.
    void change(const FileId& id, const SimFile& file) {
        const auto shared = std::make_shared<const SimFile>(file);
        for (auto& [name, each] : files) {
            if (each->id == id) {
                each = shared;
            }
        }
    }
    void put(const Name& name, const SimFile& file) {
        files.insert_or_assign(name, std::make_shared<const SimFile>(file));
    }
    void link(const Name& name, const Name& other) {
        SimFile file = *find(name);
        ++file.links;
        files.insert_or_assign(other, files.at(name));
        change(file.id, file);
    }
    void remove(const Name& name) {
        SimFile file = *find(name);
        --file.links;
        files.erase(name);
        change(file.id, file);
    }
    void rename(const Name& name, const Name& other) {
        const auto moved = files.at(name);
        const auto there = files.find(other);
        if (there != files.end() && there->second->id == moved->id) {
            return;  // two names of one file both stay
        }
        if (there != files.end()) {
            remove(other);
        }
        files.erase(name);
        files.insert_or_assign(other, moved);
    }
    [[nodiscard]] bool is_empty(std::uint32_t directory) const {
        const auto first = files.lower_bound({directory, {}});
        return first == files.end() || first->first.first != directory;
    }
};

// Bytes that a dead client wrote beyond a file's end, unknown to the file's home. They may show once the file is
// longer, as the write of a killed program may.
class SimGhosts {
public:
    // Notes a write that was to make the file longer, and was not done.
    void note(const SimFile* there, const SimFile* not_done) {
        if (there == nullptr || not_done == nullptr || there->id != not_done->id ||
            not_done->content.size() <= there->content.size()) {
            return;
        }
        const auto at = ranges_.try_emplace(there->id, there->content.size(), not_done->content.size()).first;
        at->second.first = std::min(at->second.first, there->content.size());
        at->second.second = std::max(at->second.second, not_done->content.size());
    }
    [[nodiscard]] bool is_same(const SimFile& wanted, const SimFile& found) const {
        const auto ghost = ranges_.find(found.id);
        const std::size_t size = wanted.content.size();
        if (ghost == ranges_.end() || size != found.content.size()) {
            return wanted.content == found.content;
        }
        const std::size_t from = std::min(ghost->second.first, size);
        const std::size_t to = std::min(ghost->second.second, size);
        return wanted.content.compare(0, from, found.content, 0, from) == 0 &&
               wanted.content.compare(to, size - to, found.content, to, size - to) == 0;
    }

private:
    std::map<FileId, std::pair<std::size_t, std::size_t>> ranges_;
};

}  // namespace cairn::fs
