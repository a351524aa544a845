// A daemon for client tests: a socket, channels, and a thread that answers from FakeFiles. A test can make it fail.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "fs/channel/shard_end.hpp"
#include "lib/base/owned_fd.hpp"
#include "tests/unit/fs_client/fake_files.hpp"

namespace cairn::fs {

struct FakeSetup {
    std::uint32_t shards = 1;
    std::vector<std::uint16_t> local{0};
    ChannelShape shape{8, 64U << 10U};
    std::uint32_t chunk_bytes = 64U << 10U;
};

class FakeDaemon {
public:
    // A request as it arrived in a slot of a channel.
    struct Seen {
        std::uint16_t shard = 0;  // of the channel
        std::size_t channel = 0;  // the index of the channel among those to this shard, in order of creation
        std::uint32_t slot = 0;
        RequestHead head{};

        friend bool operator==(const Seen& a, const Seen& b) noexcept {
            return std::tie(a.shard, a.channel, a.slot, a.head.sequence, a.head.operation) ==
                   std::tie(b.shard, b.channel, b.slot, b.head.sequence, b.head.operation);
        }
    };
    // Returns other bytes than the correct answer, or nullopt to keep that.
    using Fault = std::function<std::optional<FakeFiles::Bytes>(const ParsedRequest&)>;

    explicit FakeDaemon(const FakeSetup& how = {}) : setup(how), view_(1, welcome(1, 1)), files(view_) {
        path_ = testing::TempDir() + "cairn-fake-" + std::to_string(::getpid()) + ".sock";
        start();
    }
    ~FakeDaemon() {
        stop();
        ::unlink(path_.c_str());
    }

    [[nodiscard]] const std::string& socket() const { return path_; }
    // Ends the daemon as if its process died: sockets and segments go, files stay.
    void stop();
    void start();
    // Runs on the daemon's data while its thread stands still.
    template <class F>
    auto with(F f) {
        const std::lock_guard lock(mutex_);
        return f(*this);
    }
    [[nodiscard]] std::size_t count(std::string_view what) {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::ranges::count(files.asked, what));
    }
    void forget_asked() {
        const std::lock_guard lock(mutex_);
        files.asked.clear();
    }

    const FakeSetup setup;

private:
    View view_;

public:
    // Used within with().
    FakeFiles files;
    Fault fault{};
    bool answers = true;        // otherwise requests stay unanswered
    bool newest_first = false;  // answers a turn's requests in reverse
    std::uint64_t epoch = 1;
    std::optional<FakeFiles::Bytes> hello_answer{};    // sent instead of a Welcome
    std::optional<FakeFiles::Bytes> channel_answer{};  // sent instead of a channel
    std::vector<Seen> seen{};
    std::vector<std::uint64_t> hellos{};
    std::uint64_t buffer_bytes = 1U << 20U;
    std::vector<std::uint32_t> places{};  // the places of data of reads and writes

private:
    struct Channel {
        std::uint16_t shard;
        std::size_t number;
        ShardEnd end;
    };
    struct Client {
        OwnedFd socket;
        bool has_met = false;
        std::vector<std::unique_ptr<Channel>> channels{};
        std::unique_ptr<SharedMemory> buffers{};
    };

    [[nodiscard]] Welcome welcome(std::uint64_t client, std::uint64_t table_epoch) const;
    void run();
    void accept();
    void meet(Client& client);
    void open_channel(Client& client, const ChannelRequest& asks);
    static void send(Client& client, std::span<const std::uint8_t> bytes, std::vector<int> fds);
    void give_buffers(Client& client);
    bool serve(Client& client, Channel& channel);
    void answer(Client& client, Channel& channel, std::uint32_t slot);

    std::string path_;
    OwnedFd listening_;
    OwnedFd doorbell_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::vector<std::unique_ptr<Client>> clients_;
    std::mutex mutex_;
    std::atomic<bool> stops_{false};
    std::thread thread_;
};

}  // namespace cairn::fs
