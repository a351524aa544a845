// A client of a simulated file system, which knows what it has put into its own directory, and looks.
#pragma once

#include <string>
#include <vector>

#include "fs/shard/task.hpp"
#include "fs/sim/shard_cluster.hpp"
#include "fs/sim/sim_tree.hpp"

namespace cairn::fs {

struct SimClientCounts {
    std::uint64_t operations = 0;
    std::uint64_t refused = 0;  // for want of room
    std::uint64_t unknown = 0;  // no answer was to be had
    std::uint64_t resent = 0;
    std::uint64_t looked = 0;  // files whose content was compared
};

// Does one operation after the other, each with the requests that libcairnfs makes of it. A request whose shard has
// ended is made again, with the same numbers, when it is back. What ends with EIO or ETIMEDOUT may have been done or
// not: the client waits until all is calm, looks, and accepts either.
class SimClient {
public:
    SimClient(ShardCluster& cluster, std::uint64_t number, std::uint64_t seed);
    [[nodiscard]] Tasks& tasks() noexcept { return *life_; }

    // Takes answers, and goes on.
    void step();
    void resend(ShardNumber shard);
    // It dies, with what it has open; another one takes its place, which knows what it knew.
    struct Left {
        ShardClient client{};
        CallToken token = 0;  // of a call that may not be answered yet; 0: none
        ShardNumber to = 0;
    };
    Left die(std::uint64_t number);

    // All shards are there, and have been for a while.
    bool is_calm = false;
    // Begins nothing any more, looks at everything, and ends.
    bool stops = false;
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    [[nodiscard]] const std::vector<std::string>& faults() const noexcept { return faults_; }
    [[nodiscard]] const SimClientCounts& counts() const noexcept { return counts_; }
    [[nodiscard]] const ShardClient& client() const noexcept { return client_; }

private:
    struct Answered {
        std::int32_t error = 0;
        std::vector<std::uint8_t> bytes{};
    };
    // co_await: the answer to a request.
    struct Asked {
        SimClient& client;
        ShardNumber to;
        Request request;
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiter);
        [[nodiscard]] Answered await_resume() const { return std::move(client.answered_); }
    };
    // co_await: all is calm.
    struct Calm {
        SimClient& client;
        [[nodiscard]] bool await_ready() const noexcept { return client.is_calm; }
        void await_suspend(std::coroutine_handle<> waiter) noexcept { client.waits_for_calm_ = waiter; }
        void await_resume() const noexcept {}
    };
    struct Opened {
        int error = 0;
        Attributes attributes{};
        Grant grant{};
    };

    Task run();
    Co<int> operate();
    Co<int> make_own_directory();
    Co<int> create(SimTree::Name name);
    Co<int> write(SimTree::Name name);
    Co<int> truncate(SimTree::Name name);
    Co<int> remove(SimTree::Name name);
    Co<int> link(SimTree::Name name, SimTree::Name other);
    Co<int> rename(SimTree::Name name, SimTree::Name other);
    Co<int> change_directory(std::uint32_t number);
    // An operation begins that makes this of the tree, at these names.
    void begin(SimTree after, std::vector<SimTree::Name> names);
    // It has ended so.
    Co<int> end(const char* what, std::int32_t error, std::int32_t expected, bool grows);
    // Nobody knows how it ended.
    Co<int> resolve();
    Co<bool> is_so(const SimTree& tree);
    Co<Opened> open(FileId directory, std::string name, std::uint32_t rights);
    Co<int> close(FileId file);
    Co<std::optional<SimFile>> look(SimTree::Name name);
    Co<int> look_at_directory();
    Co<int> look_at_all();
    Co<int> write_piece(const Opened& file, std::uint64_t offset, const std::string& bytes);
    [[nodiscard]] Asked ask(ShardNumber to, const Request& request) { return {*this, to, request}; }
    [[nodiscard]] FileId directory_of(const SimTree::Name& name) const { return *tree_.directories[name.first]; }
    [[nodiscard]] SimTree::Name some_name();
    void fault(const std::string& what) { faults_.push_back(what); }

    ShardCluster& cluster_;
    sim::Random random_;
    ShardClient client_;
    SimTree tree_;
    struct Under {
        CallToken token = 0;
        ShardNumber to = 0;
        Request request{};
        std::coroutine_handle<> waiter{};
    } under_{};
    Answered answered_{};
    std::coroutine_handle<> waits_for_calm_{};
    bool has_ended_ = false;
    std::vector<std::string> faults_;
    std::string differs_;  // what was seen last that was not expected
    SimClientCounts counts_{};
    std::optional<SimTree> doubt_;  // what the operation that is under way makes of the tree
    std::vector<SimTree::Name> doubtful_;
    std::optional<std::uint32_t> doubtful_directory_;
    std::unique_ptr<Tasks> life_ = std::make_unique<Tasks>();
};

}  // namespace cairn::fs
