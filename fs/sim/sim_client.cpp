#include "fs/sim/sim_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "fs/shard/attributes.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kNames = 4;
constexpr int kMostLooks = 50;  // a replaced file loses its name at once, but not before the answer

[[nodiscard]] bool is_unknown(std::int32_t error) noexcept {
    return error == EIO || error == ETIMEDOUT;
}

[[nodiscard]] std::string name_of_directory(std::uint32_t number) {
    return fmt::format("d{}", number);
}

[[nodiscard]] std::string difference(const SimFile* wanted, const std::optional<SimFile>& found) {
    if (wanted == nullptr || !found) {
        return wanted == nullptr ? "there is one" : "there is none";
    }
    const auto [one, other] = std::ranges::mismatch(wanted->content, found->content);
    return fmt::format("{}, {} names instead of {}, {} bytes instead of {}, which differ at {}",
                       wanted->id == found->id ? "the file" : "another file", found->links, wanted->links,
                       found->content.size(), wanted->content.size(), one - wanted->content.begin());
}

}  // namespace

SimClient::SimClient(ShardCluster& cluster, std::uint64_t number, std::uint64_t seed)
    : SimCaller(cluster, {number, static_cast<std::uint32_t>(1000 + number), 1000}), random_(seed) {
    run();
}

SimClient::Left SimClient::die(std::uint64_t number) {
    const Left left = die_as(number);
    has_ended_ = false;
    run();
    return left;
}

SimTree::Name SimClient::some_name() {
    std::uint32_t directory = 0;
    do {
        directory = static_cast<std::uint32_t>(random_.below(SimTree::kDirectories));
    } while (!tree_.directories[directory]);
    return {directory, fmt::format("n{}", random_.below(kNames))};
}

LoneTask SimClient::run() {
    if (doubt_) {
        co_await resolve();
    }
    if (doubtful_directory_) {
        co_await look_at_directory();
    }
    while (!tree_.directories[0] && faults_.empty()) {
        co_await make_own_directory();
    }
    while (!stops && faults_.empty()) {
        ++counts_.operations;
        co_await operate();
    }
    if (faults_.empty()) {
        co_await Calm{*this};
        co_await look_at_all();
    }
    has_ended_ = true;
}

Co<int> SimClient::operate() {
    SimTree::Name name = some_name();
    SimTree::Name other = some_name();
    const std::uint64_t what = random_.below(16);
    if (what < 4) {
        co_return co_await create(name);
    }
    if (what < 8) {
        co_return co_await write(name);
    }
    if (what < 9) {
        co_return co_await truncate(name);
    }
    if (what < 11) {
        co_return co_await remove(name);
    }
    if (what < 12) {
        co_return co_await link(name, other);
    }
    if (what < 14) {
        co_return co_await rename(name, other);
    }
    co_return co_await change_directory(static_cast<std::uint32_t>(random_.between(1, SimTree::kDirectories - 1)));
}

Co<int> SimClient::make_own_directory() {
    const std::string name = fmt::format("client{}", client_.uid);
    const ShardNumber to = cluster_.owner_of_name(kRoot, name);
    Answered answered = co_await ask(to, CreateRequest{kRoot, 0040755, 0, false, name, {}});
    WalkAnswer answer;
    if (answered.error == 0 && parse_answer(answered.bytes, answer)) {
        tree_.directories[0] = answer.attributes.id;
    } else if (is_unknown(answered.error)) {
        co_await Calm{*this};
    } else if (answered.error != ENOSPC) {
        fault(fmt::format("its own directory: error {}", answered.error));
    }
    co_return 0;
}

void SimClient::begin(SimTree after, std::vector<SimTree::Name> names) {
    doubt_ = std::move(after);
    half_done_.reset();
    doubtful_ = std::move(names);
}

Co<int> SimClient::end(const char* what, std::int32_t error, std::int32_t expected, bool grows) {
    if (error == 0 && expected == 0) {
        tree_ = std::move(*doubt_);
    } else if (error == expected) {
        // Nothing has changed.
    } else if (is_unknown(error)) {
        ++counts_.unknown;
        co_return co_await resolve();
    } else if (grows && error == ENOSPC) {
        counts_.refusals.count(what);
    } else if (error != EAGAIN) {
        fault(fmt::format("{}: error {} instead of {}", what, error, expected));
    }
    doubt_.reset();
    co_return 0;
}

Co<bool> SimClient::is_so(const SimTree& tree) {
    for (std::size_t i = 0; i != doubtful_.size(); ++i) {
        const SimTree::Name name = doubtful_[i];
        if (!tree.directories[name.first]) {
            continue;
        }
        const SimFile* const wanted = tree.find(name);
        std::optional<SimFile> found = co_await look(name);
        for (int looks = 0; looks != kMostLooks && found && wanted != nullptr && found->links > wanted->links;
             ++looks) {
            found = co_await look(name);
        }
        const bool is_absent = wanted == nullptr && !found;
        const bool is_there = wanted != nullptr && found && ghosts_.is_same(*wanted, *found) &&
                              found->links == wanted->links && (wanted->id == FileId{} || wanted->id == found->id);
        if (!is_absent && !is_there) {
            differs_ = difference(wanted, found);
            co_return false;
        }
    }
    co_return true;
}

// Accepts the state before, the state after, or half of it if that is possible. That state must then stay.
Co<int> SimClient::resolve() {
    co_await Calm{*this};
    const bool is_after = co_await is_so(*doubt_);
    if (is_after) {
        tree_ = std::move(*doubt_);
        for (const SimTree::Name& name : std::vector(doubtful_)) {  // a file that was made has an id now
            const SimFile* const file = tree_.find(name);
            if (file != nullptr && file->id == FileId{}) {
                const std::optional<SimFile> found = co_await look(name);
                tree_.put(name, *found);
            }
        }
        doubt_.reset();
        co_return 0;
    }
    bool is_other = co_await is_so(tree_);
    if (!is_other && half_done_) {
        is_other = co_await is_so(*half_done_);
        tree_ = std::move(*half_done_);
    }
    if (!is_other) {
        fault("what ended with no answer is neither done nor not done: " + differs_);
    }
    for (const SimTree::Name& name : doubtful_) {
        ghosts_.note(tree_.find(name), doubt_->find(name));
    }
    doubt_.reset();
    co_return 0;
}

Co<int> SimClient::create(SimTree::Name name) {
    const bool is_there = tree_.find(name) != nullptr;
    SimTree after = tree_;
    if (!is_there) {
        after.put(name, {});
    }
    begin(std::move(after), {name});
    const ShardNumber to = cluster_.owner_of_name(directory_of(name), name.second);
    Answered answered = co_await ask(to, CreateRequest{directory_of(name), 0100644, 0, true, name.second, {}});
    WalkAnswer answer;
    if (answered.error == 0 && parse_answer(answered.bytes, answer) && !is_there) {
        doubt_->put(name, {answer.attributes.id, 1, {}});
    }
    co_return co_await end("create", answered.error, is_there ? EEXIST : 0, true);
}

Co<int> SimClient::remove(SimTree::Name name) {
    const bool is_there = tree_.find(name) != nullptr;
    SimTree after = tree_;
    if (is_there) {
        after.remove(name);
    }
    begin(std::move(after), {name});
    const ShardNumber to = cluster_.owner_of_name(directory_of(name), name.second);
    Answered answered = co_await ask(to, RemoveRequest{directory_of(name), false, name.second});
    co_return co_await end("remove", answered.error, is_there ? 0 : ENOENT, false);
}

Co<int> SimClient::link(SimTree::Name name, SimTree::Name other) {
    const SimFile* const file = tree_.find(name);
    if (file == nullptr) {
        co_return 0;
    }
    const FileId id = file->id;
    const bool is_there = tree_.find(other) != nullptr;
    SimTree after = tree_;
    if (!is_there) {
        after.link(name, other);
    }
    begin(std::move(after), {name, other});
    const ShardNumber to = cluster_.owner_of_name(directory_of(other), other.second);
    Answered answered = co_await ask(to, LinkRequest{id, directory_of(other), other.second});
    co_return co_await end("link", answered.error, is_there ? EEXIST : 0, true);
}

Co<int> SimClient::rename(SimTree::Name name, SimTree::Name other) {
    const bool is_there = tree_.find(name) != nullptr;
    SimTree after = tree_;
    if (is_there) {
        after.rename(name, other);
    }
    begin(std::move(after), {name, other});
    const ShardNumber to = cluster_.owner_of_name(directory_of(name), name.second);
    Answered answered =
        co_await ask(to, RenameRequest{directory_of(name), directory_of(other), false, name.second, other.second});
    co_return co_await end("rename", answered.error, is_there ? 0 : ENOENT, true);
}

// Makes the directory, or removes it.
Co<int> SimClient::change_directory(std::uint32_t number) {
    const bool removes = tree_.directories[number].has_value();
    const int expected = removes && !tree_.is_empty(number) ? ENOTEMPTY : 0;
    doubtful_directory_ = number;
    const std::string name = name_of_directory(number);
    const FileId own = *tree_.directories[0];
    const ShardNumber to = cluster_.owner_of_name(own, name);
    Request request = RemoveRequest{own, true, name};
    if (!removes) {
        request = CreateRequest{own, 0040755, 0, true, name, {}};
    }
    Answered answered = co_await ask(to, request);
    WalkAnswer answer;
    if (is_unknown(answered.error)) {
        ++counts_.unknown;
        co_return co_await look_at_directory();
    }
    doubtful_directory_.reset();
    if (answered.error == expected && expected == 0) {
        const bool is_made = !removes && parse_answer(answered.bytes, answer);
        tree_.directories[number] = is_made ? std::optional(answer.attributes.id) : std::nullopt;
    } else if (answered.error == ENOSPC && !removes) {
        counts_.refusals.count("mkdir");
    } else if (answered.error != expected && answered.error != EAGAIN) {
        fault(fmt::format("a directory: error {} instead of {}", answered.error, expected));
    }
    co_return 0;
}

// Looks whether the changed directory exists.
Co<int> SimClient::look_at_directory() {
    co_await Calm{*this};
    const std::uint32_t number = *doubtful_directory_;
    const std::string name = name_of_directory(number);
    const FileId own = *tree_.directories[0];
    Answered answered = co_await ask(cluster_.owner_of_name(own, name), WalkRequest{own, 0, name});
    WalkAnswer answer;
    const bool is_there = answered.error == 0 && parse_answer(answered.bytes, answer);
    if (!is_there && !tree_.is_empty(number)) {
        fault("a directory that was not empty is gone");
    }
    tree_.directories[number] = is_there ? std::optional(answer.attributes.id) : std::nullopt;
    doubtful_directory_.reset();
    co_return 0;
}

Co<int> SimClient::look_at_all() {
    for (std::uint32_t directory = 0; directory != SimTree::kDirectories; ++directory) {
        for (std::uint32_t i = 0; tree_.directories[directory] && i != kNames; ++i) {
            const SimTree::Name name{directory, fmt::format("n{}", i)};
            doubtful_ = {name};
            if (!co_await is_so(tree_)) {
                fault(fmt::format("in the end, at {}/{}: {}", name_of_directory(directory), name.second, differs_));
            }
        }
    }
    co_return 0;
}

}  // namespace cairn::fs
