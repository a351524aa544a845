#include "fs/shard/background.hpp"

#include <algorithm>
#include <vector>

namespace cairn::fs {

namespace {

// Cleaning reads more than was appended, so that the log stays bounded. It reads not much more, so that calls do not
// wait long.
constexpr std::uint64_t kLeastCleaned = 4096;
constexpr std::uint64_t kMostCleaned = 128U << 10U;
constexpr std::uint32_t kMostTouched = 64;
constexpr std::size_t kPartsOfATurn = Table<FileId, InodeState>::kParts / 16;

}  // namespace

Background::Background(ShardState& state, Cutter& cutter, Cuts& cuts, Lending& lending, KeptAnswers& kept)
    : state_(state), cutter_(cutter), cuts_(cuts), lending_(lending), kept_(kept), sweeper_(state) {}

void Background::forget(std::uint64_t client) {
    for (const FileId& file : state_.leases.forget(client)) {
        const InodeState* const inode = state_.inode(file);
        if (inode != nullptr && inode->inode.links == 0) {
            cutter_.remove_later(file);
        }
    }
    kept_.forget(client);
    sweeper_.suspect();
}

// By now all clients that had files open before the restart have opened them again, or are gone.
void Background::end_grace() {
    if (state_.time.now < kept_.grace_ends()) {
        return;
    }
    for (const std::uint64_t client : kept_.take_absent(state_.time.now)) {
        kept_.forget(client);
    }
    orphans_from_ = 0;
}

// Looks at a sixteenth of the table in each turn. A scan of a million files would stall calls for many milliseconds.
void Background::look_for_orphans() {
    std::vector<FileId> orphans;
    for (const std::size_t end = orphans_from_ + kPartsOfATurn; orphans_from_ != end; ++orphans_from_) {
        state_.store.tables().inodes().for_each_of(orphans_from_, [&](const FileId& file, const InodeState& inode) {
            if (inode.inode.links == 0 && !state_.leases.is_open(file)) {
                orphans.push_back(file);
            }
        });
    }
    std::ranges::sort(orphans);  // the order in tables differs each time
    for (const FileId& file : orphans) {
        cutter_.remove_later(file);
    }
}

void Background::write_touched(std::uint32_t most) {
    std::uint32_t written = 0;
    for (auto at = state_.touched.begin(); at != state_.touched.end() && written != most; ++written) {
        const InodeState* const directory = state_.inode(at->first);
        if (directory != nullptr) {
            state_.change.put(state_.seen_copy(*directory));
            if (!state_.apply(Need::Grows)) {
                touched_due_ = state_.time.now + kTouchedEvery;
                return;
            }
        }
        at = state_.touched.erase(at);
    }
    touched_due_ = state_.touched.empty() ? Instant::never() : state_.time.now;
}

// A medium of pages gives space back only at a sync.
int Background::sync(bool wanted) {
    if (!state_.store.is_paged()) {
        return 0;
    }
    if (state_.appended_bytes != 0) {
        sync_due_ = std::min(sync_due_, state_.time.now + kSyncEvery);
    }
    if (wanted || state_.lacks_room || state_.time.now >= sync_due_) {
        sync_due_ = Instant::never();
        ++state_.counters.syncs;
        sync_failed_ = !state_.store.sync().ok() || sync_failed_;
    }
    return sync_failed_ ? EIO : 0;
}

void Background::cut() {
    const std::optional<Cutter::Done> done = cutter_.step();
    if (done && done->goes_elsewhere) {
        cuts_.remove(done->file);
    } else if (done) {
        answer_cut(*done);
    }
}

void Background::answer_cut(const Cutter::Done& done) {
    const InodeState* const inode = state_.inode(done.file);
    const int error = done.error != 0 ? done.error : inode == nullptr ? ENOENT : 0;
    if (error != 0) {
        state_.replies.error(done.token, error);
    } else {
        state_.replies.ok(done.token, AttributesAnswer{state_.seen(*inode)});
    }
}

Background::Outcome Background::run(bool sync_wanted) {
    Outcome outcome;
    end_grace();
    kept_.drop_forgotten();
    if (orphans_from_ != kNoOrphans) {
        look_for_orphans();
    }
    if (!cutter_.is_idle()) {
        cut();
    }
    if (!state_.is_alone()) {
        lending_.tell_touched();
        sweeper_.run();
    }
    if (!state_.touched.empty()) {
        touched_due_ = std::min(touched_due_, state_.time.now + kTouchedEvery);
        if (state_.time.now >= touched_due_) {
            write_touched(kMostTouched);
        }
    }
    state_.replies.commit();
    outcome.sync_error = sync(sync_wanted);
    const auto cleaned =
        std::clamp(state_.store.use().cleaning_pace * state_.appended_bytes, kLeastCleaned, kMostCleaned);
    const bool cleans = state_.store.clean(static_cast<std::uint32_t>(cleaned));
    state_.open_room();
    state_.appended_bytes = 0;
    state_.lacks_room = false;
    outcome.has_more = cleans || !cutter_.is_idle() || orphans_from_ != kNoOrphans;
    return outcome;
}

Instant Background::next_deadline() const noexcept {
    const Instant never = Instant::never();
    return std::min({kept_.grace_ends(), state_.touched.empty() ? never : touched_due_, sync_due_,
                     sweeper_.next_deadline(), never});
}

}  // namespace cairn::fs
