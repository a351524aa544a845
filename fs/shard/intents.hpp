// Intents: changes at several shards that are under way. Their coordinator keeps them in its log until all is done.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "fs/message/peers.hpp"
#include "fs/rules/ids.hpp"
#include "fs/shard/attributes.hpp"

namespace cairn::fs {

// The call to answer, also after a restart.
struct Asker {
    std::uint64_t client = 0;
    std::uint32_t slot = 0;
    std::uint32_t sequence = 0;
    static void fields(auto& io, auto& self) { io(self.client, self.slot, self.sequence); }
};

// A name is gone. The file's home must learn that.
struct DropName {
    FileId file{};
    static void fields(auto& io, auto& self) { io(self.file); }
};

// A file gets a name here if its home agrees.
struct AddName {
    Asker asker{};
    FileId file{};
    FileId directory{};
    std::string_view name{};
    static void fields(auto& io, auto& self) {
        Asker::fields(io, self.asker);
        io(self.file, self.directory, self.name);
    }
};

// A name moves from here to another shard, which places it.
struct MoveName {
    Asker asker{};
    FileId directory{};
    FileId to_directory{};
    FileId child{};
    std::uint32_t mode = 0;
    bool no_replace = false;
    std::string_view name{};
    std::string_view to_name{};
    Who who{};
    static void fields(auto& io, auto& self) {
        Asker::fields(io, self.asker);
        io(self.directory, self.to_directory, self.child, self.mode, self.no_replace, self.name, self.to_name);
        Who::fields(io, self.who);
    }
};

// True if the move changes the directory's "..", and with it the tree. One such move is made at a time.
[[nodiscard]] constexpr bool takes_turn(const MoveName& move) noexcept {
    return is_directory(move.mode) && move.directory != move.to_directory;
}

// A directory is removed if its home agrees. Its name is here.
struct DropDirectory {
    Asker asker{};
    FileId directory{};  // the parent
    FileId child{};
    std::uint32_t mode = 0;  // the parent's, as uid and gid
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string_view name{};
    Who who{};
    static void fields(auto& io, auto& self) {
        Asker::fields(io, self.asker);
        io(self.directory, self.child, self.mode, self.uid, self.gid, self.name);
        Who::fields(io, self.who);
    }
};

// A file of this shard becomes shorter. Other shards have chunks of it.
struct CutFile {
    FileId file{};
    std::uint64_t size = 0;
    static void fields(auto& io, auto& self) { io(self.file, self.size); }
};

// The turn to move a directory, kept at the root's home.
struct HeldTurn {
    std::uint16_t shard = 0;
    std::uint64_t turn = 0;
    static void fields(auto& io, auto& self) { io(self.shard, self.turn); }
};
constexpr std::uint64_t kHeldTurn = ~std::uint64_t{0};  // the number of its intent

// The order is the format: new kinds are added at the end.
using IntentText = std::variant<DropName, AddName, MoveName, DropDirectory, CutFile, HeldTurn>;

[[nodiscard]] std::vector<std::uint8_t> bytes_of(const IntentText& intent);
// Parses an intent. Its texts refer to the bytes.
[[nodiscard]] std::optional<IntentText> parse_intent(std::span<const std::uint8_t> bytes);

}  // namespace cairn::fs
