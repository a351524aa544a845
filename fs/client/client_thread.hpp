// ClientThread: what a thread of a client has for itself.
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

// What all threads of a client share.
struct ClientCommon {
    std::unique_ptr<Connection> connection;
    Duration timeout{};
    OpenFiles files{};
    LateSizes late{};
    std::atomic<bool> is_relaxed{false};  // files that are opened from now on
    std::atomic<std::uint32_t> umask{0};
    std::atomic<std::uint64_t> moves{0};  // names that this client has taken away from where they were
};

class ClientThread final : MeetingWatch {
public:
    // `common` outlives it.
    explicit ClientThread(ClientCommon& common) : common_(common), road_(*common.connection, *this, common.timeout) {}

    [[nodiscard]] Road& road() noexcept { return road_; }
    [[nodiscard]] const View& view() const noexcept { return road_.view(); }
    [[nodiscard]] OpenFiles& files() noexcept { return common_.files; }
    [[nodiscard]] LateSizes& late() noexcept { return common_.late; }
    [[nodiscard]] bool is_relaxed() const noexcept { return common_.is_relaxed.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t umask() const noexcept { return common_.umask.load(std::memory_order_relaxed); }
    [[nodiscard]] PiecePool& pieces() noexcept { return pieces_; }

    // Knows nothing that the client itself has made untrue.
    [[nodiscard]] DirectoryCache& directories() noexcept;
    // A name that may be a directory's was taken away.
    void on_move() noexcept { common_.moves.fetch_add(1, std::memory_order_relaxed); }

    [[nodiscard]] std::unique_ptr<PathWalk> take_walk();
    void give_walk(std::unique_ptr<PathWalk> walk) noexcept { walks_.push_back(std::move(walk)); }

private:
    void met_again() noexcept override;

    ClientCommon& common_;
    PiecePool pieces_;  // outlives what uses it on the road
    DirectoryCache directories_;
    std::uint64_t moves_ = 0;  // as many as directories_ knows of
    std::vector<std::unique_ptr<PathWalk>> walks_;
    Road road_;
};

// A PathWalk as long as it is needed.
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
