// What a simulated client has put into its own directory.
#pragma once

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

// A value: a copy is what was there at a moment. Two names of one file share it.
struct SimTree {
    static constexpr std::uint32_t kDirectories = 3;  // the client's own, and two in it

    using Name = std::pair<std::uint32_t, std::string>;  // a directory's number, and a name in it
    std::array<std::optional<FileId>, kDirectories> directories{};
    std::map<Name, std::shared_ptr<const SimFile>> files{};

    [[nodiscard]] const SimFile* find(const Name& name) const {
        const auto found = files.find(name);
        return found == files.end() ? nullptr : found->second.get();
    }
    // All names of a file have it so.
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
            return;  // two names of one file stay
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

}  // namespace cairn::fs
