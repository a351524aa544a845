#include "fs/sim/sim_filler.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace cairn::fs {

namespace {

constexpr std::uint32_t kChunks = 16;       // in a file
constexpr std::size_t kTargetBytes = 4000;  // in a link; a few of them fill a log
constexpr std::uint32_t kUid = 5000;
constexpr int kMostTries = 2000;          // to remove everything
constexpr std::uint64_t kMostAtOnce = 8;  // files removed before others come

}  // namespace

SimFiller::SimFiller(ShardCluster& cluster, std::uint64_t number, std::uint64_t seed)
    : SimCaller(cluster, {number, kUid, kUid}), random_(seed) {
    run();
}

void SimFiller::come_back() {
    has_ended_ = false;
    run_again();
}

std::string SimFiller::new_name() {
    names_.push_back(fmt::format("fill{}", made_++));
    return names_.back();
}

LoneTask SimFiller::run() {
    co_await fill();
    while (!stops && faults_.empty()) {
        co_await change_something();
    }
    co_await Calm{*this};
    co_await remove_all();
    has_ended_ = true;
}

// Makes as many files as there are shards, so that each shard gets chunks of them.
LoneTask SimFiller::run_again() {
    for (ShardNumber i = 0; i != cluster_.size() && faults_.empty(); ++i) {
        const int error = co_await add_file(kChunks);
        if (error != 0) {
            faults_.push_back(fmt::format("a store that was emptied takes no data: error {}", error));
        }
    }
    co_await remove_all();
    has_ended_ = true;
}

Co<int> SimFiller::fill() {
    while (!stops && without_space_.size() != cluster_.size()) {
        co_await add_file(kChunks);
    }
    while (!stops && without_room_.size() != cluster_.size()) {
        co_await add_link();
    }
    is_full_ = !stops;
    co_return 0;
}

// Adds files until there is no room, and then makes some room.
Co<int> SimFiller::change_something() {
    if (to_remove_ != 0 && !names_.empty()) {
        --to_remove_;
        std::swap(names_[random_.below(names_.size())], names_.back());
        co_return co_await remove_last();
    }
    int error = 0;
    if (random_.below(2) == 0) {
        error = co_await add_link();
    } else {
        error = co_await add_file(static_cast<std::uint32_t>(random_.between(1, kChunks)));
    }
    if (error == ENOSPC) {
        to_remove_ = random_.below(kMostAtOnce);
    }
    co_return error;
}

Co<int> SimFiller::add_file(std::uint32_t chunks) {
    const std::string name = new_name();
    const CreateRequest request{kRoot, 0100644, kMayRead | kMayWrite, true, name, {}};
    Answered answered = co_await ask(owner_of(name), request);
    WalkAnswer made;
    if (answered.error != 0 || !parse_answer(answered.bytes, made)) {
        if (answered.error == ENOSPC) {
            names_.pop_back();
            refusals_.count("create");
        }
        co_return answered.error;
    }
    const FileId id = made.attributes.id;
    const Grant grant{kMayRead | kMayWrite, made.proof};
    int error = 0;
    for (std::uint32_t chunk = 0; chunk != chunks; ++chunk) {
        const std::uint64_t offset = std::uint64_t{chunk} * ShardCluster::kChunkBytes;
        const ShardNumber to = cluster_.owner_of_chunk(id, chunk);
        answered = co_await ask(to, WriteRequest{id, grant, offset, 0, ShardCluster::kChunkBytes, 0});
        if (answered.error == ENOSPC) {
            without_space_.insert(to);
            refusals_.count("write");
        } else if (answered.error == 0 && to != cluster_.home_of(id)) {
            const ExtendRequest extend{id, grant, offset + ShardCluster::kChunkBytes, 0};
            answered = co_await ask(cluster_.home_of(id), extend);
        }
        error = error != 0 ? error : answered.error;
    }
    (void)co_await ask(cluster_.home_of(id), CloseRequest{id});
    co_return error;
}

Co<int> SimFiller::add_link() {
    const std::string name = new_name();
    const std::string target(kTargetBytes, 't');
    const ShardNumber to = owner_of(name);
    Answered answered = co_await ask(to, CreateRequest{kRoot, 0120777, 0, true, name, target});
    if (answered.error == ENOSPC) {
        names_.pop_back();
        without_room_.insert(to);
        refusals_.count("symlink");
    }
    co_return answered.error;
}

// Removes the last name, if it exists.
Co<int> SimFiller::remove_last() {
    const std::string name = names_.back();
    Answered answered = co_await ask(owner_of(name), RemoveRequest{kRoot, false, name});
    if (answered.error == 0 || answered.error == ENOENT) {
        names_.pop_back();
    } else if (answered.error == ENOSPC) {
        faults_.emplace_back("a full store refuses to remove a file");
    }
    co_return answered.error;
}

Co<int> SimFiller::remove_all() {
    int error = 0;
    for (int tries = 0; !names_.empty() && tries != kMostTries && faults_.empty(); ++tries) {
        error = co_await remove_last();
    }
    if (!names_.empty() && faults_.empty()) {
        faults_.push_back(fmt::format("{} files cannot be removed: error {}", names_.size(), error));
    }
    co_return error;
}

}  // namespace cairn::fs
