// Which clients have which files open.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <vector>

#include "fs/rules/ids.hpp"

namespace cairn::fs {

// Kept in memory only: a client that comes back after a restart opens its files again.
class Leases {
public:
    // The client's call that opens or closes. A call that is repeated because its answer was lost changes nothing.
    struct Caller {
        std::uint64_t client = 0;
        std::uint32_t slot = 0;
        std::uint32_t sequence = 0;
    };
    // Notes that a client has opened a file once more.
    void open(const FileId& file, const Caller& by);
    // Notes that a client has closed a file once. Returns false if the client does not have it open.
    [[nodiscard]] bool close(const FileId& file, const Caller& by);
    [[nodiscard]] bool is_open(const FileId& file) const noexcept { return holders_.contains(file); }
    // Closes all that a client has open. Returns the files that no client has open any more.
    [[nodiscard]] std::vector<FileId> forget(std::uint64_t client);

private:
    struct Holder {
        std::uint64_t client = 0;
        std::uint32_t opens = 0;
    };
    using Holders = absl::InlinedVector<Holder, 2>;

    struct Client {
        absl::flat_hash_set<FileId, IdHash> files{};
        std::vector<std::uint64_t>
            last_calls{};  // by slot: 0, or one more than the sequence number of its last open or close
    };
    [[nodiscard]] static bool comes_again(Client& client, const Caller& by);

    absl::flat_hash_map<FileId, Holders, IdHash> holders_;
    absl::flat_hash_map<std::uint64_t, Client, IdHash> clients_;
};

}  // namespace cairn::fs
