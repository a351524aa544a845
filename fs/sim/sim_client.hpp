// A client of a simulated file system. It knows what it has put into its own directory, and checks it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fs/sim/sim_caller.hpp"
#include "fs/sim/sim_refusals.hpp"
#include "fs/sim/sim_tree.hpp"

namespace cairn::fs {

struct SimClientCounts {
    std::uint64_t operations = 0;
    std::uint64_t unknown = 0;  // operations without an answer
    std::uint64_t looked = 0;   // files with compared content
    SimRefusals refusals{};     // refusals for want of room
};

// Does one operation after the other, each with the requests that libcairnfs would make. If a shard ends, the request
// is made again with the same numbers when the shard is back. An operation that ends with EIO or ETIMEDOUT may or may
// not have been done. Then the client waits until all is calm, looks, and accepts either result.
class SimClient final : public SimCaller {
public:
    SimClient(ShardCluster& cluster, std::uint64_t number, std::uint64_t seed);

    // Dies with its files open. Another client takes its place, and knows what this one knew.
    Left die(std::uint64_t number);

    // Begins no more operations, checks everything, and ends.
    bool stops = false;
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    [[nodiscard]] const std::vector<std::string>& faults() const noexcept { return faults_; }
    [[nodiscard]] const SimClientCounts& counts() const noexcept { return counts_; }

private:
    struct Opened {
        int error = 0;
        Attributes attributes{};
        Grant grant{};
    };

    LoneTask run();
    Co<int> operate();
    Co<int> make_own_directory();
    Co<int> create(SimTree::Name name);
    Co<int> write(SimTree::Name name);
    Co<int> truncate(SimTree::Name name);
    Co<int> remove(SimTree::Name name);
    Co<int> link(SimTree::Name name, SimTree::Name other);
    Co<int> rename(SimTree::Name name, SimTree::Name other);
    Co<int> change_directory(std::uint32_t number);
    // Begins an operation that changes the tree to `after`, at these names.
    void begin(SimTree after, std::vector<SimTree::Name> names);
    // Ends the operation with this error.
    Co<int> end(const char* what, std::int32_t error, std::int32_t expected, bool grows);
    // Finds out how an operation ended whose result is unknown.
    Co<int> resolve();
    Co<bool> is_so(const SimTree& tree);
    Co<Opened> open(FileId directory, std::string name, std::uint32_t rights);
    Co<int> close(FileId file);
    Co<std::optional<SimFile>> look(SimTree::Name name);
    Co<int> look_at_directory();
    Co<int> look_at_all();
    Co<int> write_piece(const Opened& file, std::uint64_t offset, const std::string& bytes);
    [[nodiscard]] FileId directory_of(const SimTree::Name& name) const { return *tree_.directories[name.first]; }
    [[nodiscard]] SimTree::Name some_name();
    void fault(const std::string& what) { faults_.push_back(what); }

    sim::Random random_;
    SimTree tree_;
    bool has_ended_ = false;
    SimGhosts ghosts_;
    std::vector<std::string> faults_;
    std::string differs_;  // the last unexpected observation
    SimClientCounts counts_{};
    std::optional<SimTree> doubt_;      // the tree if the present operation is done
    std::optional<SimTree> half_done_;  // the tree if a write across a file's end is done only below that end
    std::vector<SimTree::Name> doubtful_;
    std::optional<std::uint32_t> doubtful_directory_;
};

}  // namespace cairn::fs
