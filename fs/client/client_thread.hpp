// ClientThread: a client's state that belongs to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "fs/client/coarse_time.hpp"
#include "fs/client/connection.hpp"
#include "fs/client/directory_cache.hpp"
#include "fs/client/late_sizes.hpp"
#include "fs/client/open_files.hpp"
#include "fs/client/path_walk.hpp"
#include "fs/client/road.hpp"
#include "fs/client/transfer.hpp"

namespace cairn::fs {

// The state that all threads of a client share.
struct ClientCommon {
    std::unique_ptr<Connection> connection;
    Duration timeout{};
    OpenFiles files{};
    LateSizes late{};
    std::atomic<bool> is_relaxed{false};  // for files that are opened from now on
    std::atomic<std::uint32_t> umask{0};
    std::atomic<std::uint64_t> moves{0};  // how often this client took a name away from its place
};

class ClientThread final : MeetingWatch {
public:
    // Makes the thread's part. `common` outlives it.
    explicit ClientThread(ClientCommon& common) : common_(common), road_(*common.connection, *this, common.timeout) {}

    [[nodiscard]] Road& road() noexcept { return road_; }
    [[nodiscard]] const View& view() const noexcept { return road_.view(); }
    [[nodiscard]] OpenFiles& files() noexcept { return common_.files; }
    [[nodiscard]] LateSizes& late() noexcept { return common_.late; }
    [[nodiscard]] bool is_relaxed() const noexcept { return common_.is_relaxed.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t umask() const noexcept { return common_.umask.load(std::memory_order_relaxed); }
    [[nodiscard]] PiecePool& pieces() noexcept { return pieces_; }

    // Returns the cache, without entries that the client itself has made untrue.
    [[nodiscard]] DirectoryCache& directories() noexcept;
    // Notes that a name was taken away that may be a directory's.
    void on_move() noexcept { common_.moves.fetch_add(1, std::memory_order_relaxed); }

    [[nodiscard]] std::unique_ptr<PathWalk> take_walk();
    void give_walk(std::unique_ptr<PathWalk> walk) noexcept { walks_.push_back(std::move(walk)); }

private:
    void met_again() noexcept override;

    ClientCommon& common_;
    PiecePool pieces_;  // outlives the asks on the router
    DirectoryCache directories_;
    std::uint64_t moves_ = 0;  // the value of `moves` that directories_ has taken into account
    std::vector<std::unique_ptr<PathWalk>> walks_;
    Road road_;
};

// A PathWalk, borrowed from the thread for as long as it is needed.
class WalkLease {
public:
    explicit WalkLease(ClientThread& thread) : thread_(thread), walk_(thread.take_walk()) {}
    WalkLease(const WalkLease&) = delete;
    WalkLease& operator=(const WalkLease&) = delete;
    ~WalkLease() { thread_.give_walk(std::move(walk_)); }

    [[nodiscard]] PathWalk& operator*() const noexcept { return *walk_; }
    [[nodiscard]] PathWalk* operator->() const noexcept { return walk_.get(); }

private:
    ClientThread& thread_;
    std::unique_ptr<PathWalk> walk_;
};

}  // namespace cairn::fs
