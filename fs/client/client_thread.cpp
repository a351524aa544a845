#include "fs/client/client_thread.hpp"

#include "fs/client/asking.hpp"
#include "fs/client/operation.hpp"

namespace cairn::fs {

namespace {

// The daemon has forgotten that this client has the file open; the proof shows it. If the file exists no more, later
// calls fail.
Task<Outcome<>> open_again(ClientThread& thread, std::shared_ptr<File> file) {
    const Outcome<OpenAnswer> opened = co_await Asking<OpenAnswer>(
        thread.road(), Target::home(file->id), OpenRequest{file->id, file->granted, file->grant().proof});
    if (opened.ok()) {
        file->proof.store(opened.value.proof, std::memory_order_relaxed);
    }
    co_return Outcome<>{};
}

}  // namespace

DirectoryCache& ClientThread::directories() noexcept {
    const std::uint64_t moves = common_.moves.load(std::memory_order_relaxed);
    if (moves != moves_) {
        moves_ = moves;
        directories_.clear();
    }
    return directories_;
}

std::unique_ptr<PathWalk> ClientThread::take_walk() {
    if (walks_.empty()) {
        return std::make_unique<PathWalk>();
    }
    std::unique_ptr<PathWalk> walk = std::move(walks_.back());
    walks_.pop_back();
    return walk;
}

void ClientThread::met_again() noexcept {
    for (std::shared_ptr<File>& file : common_.files.all()) {
        open_again(*this, std::move(file)).start(nullptr, nullptr);
    }
}

bool may_wait(ClientThread& thread) noexcept {
    return !thread.road().is_polling();
}

void wait_once(ClientThread& thread) noexcept {
    thread.road().wait();
}

}  // namespace cairn::fs
