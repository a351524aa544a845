#include "fs/client/listing.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "fs/client/asking.hpp"
#include "fs/client/operations.hpp"
#include "fs/rules/names.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint64_t kPlaces = std::uint64_t{1} << Directory::kShardCursorBits;

}  // namespace

std::uint64_t Directory::cursor_of(std::uint64_t shard, std::uint64_t place) noexcept {
    return place < kPlaces ? shard * kPlaces + place : (shard + 1) * kPlaces;
}

void Directory::seek(std::uint64_t cursor) noexcept {
    shard_ = static_cast<std::uint32_t>(cursor / kPlaces);
    place_ = cursor % kPlaces;
    seen_.clear();
    entries_.clear();
}

// A name whose shard was asked before was listed there, or is newer than that listing.
bool Directory::is_new(const ListedName& listed) const noexcept {
    return view_->owner(view_->slot_of(file_.id, listed.name)) >= shard_ &&
           std::ranges::find(seen_, listed.name) == seen_.end();
}

void Directory::add(const ListedName& listed) {
    const char* const name = names_.data() + names_.size();
    names_.append(listed.name);
    names_ += '\0';
    entries_.push_back({listed.child, listed.mode, cursor_of(shard_, listed.cursor), {name, listed.name.size()}});
}

int Directory::take_page(std::span<const std::uint8_t> answer) {
    ListReader list(answer);
    std::uint64_t place = place_;
    std::vector<std::string> seen;
    entries_.clear();
    names_.clear();
    names_.reserve(2 * kAnswerBytes);  // names do not move
    while (const std::optional<ListedName> listed = list.next()) {
        if (judge_name(listed->name) != 0 || listed->cursor < place) {
            return EIO;
        }
        if (listed->cursor != place) {
            place = listed->cursor;
            seen.clear();
        }
        seen.emplace_back(listed->name);
        if (is_new(*listed)) {
            add(*listed);
        }
    }
    const bool stands_still = !list.facts().is_end && place == place_ && entries_.empty();
    if (!list.is_whole() || stands_still) {
        return EIO;
    }
    end_page(list.facts().is_end, place, std::move(seen));
    return 0;
}

void Directory::end_page(bool is_end, std::uint64_t place, std::vector<std::string> seen) noexcept {
    if (is_end || place >= kPlaces) {
        ++shard_;
        place_ = 0;
        seen_.clear();
    } else if (place == place_) {
        std::ranges::move(seen, std::back_inserter(seen_));
    } else {
        place_ = place;
        seen_ = std::move(seen);
    }
}

Task<Outcome<std::unique_ptr<Directory>>> open_directory(ClientThread& thread, std::string_view path) {
    const Outcome<File*> file = co_await open_file(thread, path, O_RDONLY | O_DIRECTORY, 0);
    if (!file.ok()) {
        co_return Failure{file.error};
    }
    co_return std::make_unique<Directory>(*file.value, thread.road().shared_view());
}

Task<Outcome<std::span<const DirectoryEntry>>> read_directory(ClientThread& thread, Directory& directory) {
    while (!directory.is_at_end()) {
        const ListRequest request{directory.file().id, directory.place()};
        const Outcome<RawAnswer> answer =
            co_await Asking<RawAnswer>(thread.road(), Target::shard(directory.shard()), request);
        const int error = answer.ok() ? directory.take_page(answer.value.bytes) : answer.error;
        if (error != 0) {
            co_return Failure{error};
        }
        if (!directory.entries().empty()) {
            co_return directory.entries();
        }
    }
    co_return std::span<const DirectoryEntry>{};
}

}  // namespace cairn::fs
