// Changes of names in which other shards have a part. This shard coordinates them. Its intent says what must be done,
// also after a restart.
#pragma once

#include <memory>

#include "fs/shard/places.hpp"
#include "fs/shard/room.hpp"

namespace cairn::fs {

class NameMoves {
public:
    NameMoves(ShardState& state, PeerCalls& peers, Steps& steps, Places& places) noexcept
        : state_(state), peers_(peers), steps_(steps), places_(places) {}
    [[nodiscard]] Tasks& tasks() noexcept { return tasks_; }

    // Handle calls of which this shard has the (old) name. The name's gate is open, and the caller has judged all that
    // it can. `directory` is the name's, and lets the caller change names. Each call is answered once.
    LoneTask remove_file(KeptCall kept, Owned directory);
    LoneTask remove_directory(KeptCall kept, Owned directory);
    LoneTask link(KeptCall kept);
    LoneTask rename(KeptCall kept, Owned directory);

    // Goes on with an intent after a restart. Its gate, if it has one, is closed.
    LoneTask resume(StepId step, std::vector<std::uint8_t> said, std::unique_ptr<ClosedGate> gate);
    [[nodiscard]] std::unique_ptr<ClosedGate> close_gate(const IntentText& intent);
    // Gives back the turn of an earlier life. Called after a restart without an intent to move a directory: the earlier
    // life may have had the turn nevertheless.
    LoneTask end_early_turn();

private:
    Co<int> finish(StepId step, AddName intent, CallToken token);
    Co<int> finish(StepId step, DropDirectory intent, CallToken token);
    Co<int> finish(StepId step, MoveName intent, CallToken token);
    Co<int> rename_named(const KeptCall& kept, Owned directory);
    Co<int> take_turn(std::uint64_t turn);
    LoneTask end_turn(std::uint64_t turn);
    Co<int> judge_rename(const RenameRequest& request, Owned directory, DentryState child, Credentials who);
    Co<int> judge_loop(FileId moved, FileId into);
    Co<int> end(StepId step, CallToken token, int error);
    // Removes the name from the directory, if the name exists, and answers. Yields 0 or an errno.
    Co<int> end_made(StepId step, const Asker& asker, const Gone::Name& name, bool is_to_go, CallToken token);
    Co<int> take_back(StepId step, const AddName& intent);
    [[nodiscard]] std::optional<StepId> begin(const IntentText& intent, Need need, CallToken token);
    void put_answer(const Asker& asker);
    [[nodiscard]] Gate gate_of(const FileId& directory, std::string_view name) const {
        return {Gate::Kind::Name, directory, std::string(name)};
    }
    [[nodiscard]] ShardNumber owner_of(const FileId& directory, std::string_view name) const noexcept {
        return state_.facts.table.owner(state_.slot_of(directory, name));
    }

    ShardState& state_;
    PeerCalls& peers_;
    Steps& steps_;
    Places& places_;
    bool has_early_turn_ = false;  // must be given back before another turn is asked for
    Tasks tasks_;
};

}  // namespace cairn::fs
