// The stores of a daemon: opened as they are, or made, each on a medium of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/daemon/store_name.hpp"
#include "fs/medium/medium.hpp"
#include "fs/shard/shard.hpp"
#include "fs/store/store.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

struct StoreWishes {
    std::string data_path{};  // a file; or
    std::string pmem_path{};  // persistent memory; or, with neither, memory
    bool allow_fake_pmem = false;
    std::uint64_t capacity_bytes = 0;  // of each store; 0: what there is
    std::uint32_t shards = 1;          // of this process; a path has a store's place behind a dot if there are several
    std::uint32_t nodes = 1;           // processes with as many shards
    std::uint32_t node = 0;            // this one; the store at place p is shard p * nodes + node
    std::optional<SipKey> cluster_key{};  // there if there are several nodes (asserted)
    bool format = false;                  // what lies there is lost
    // Of stores that are made; those that are there have to agree. Nothing: what they have, or the default.
    std::optional<std::uint32_t> chunk_bytes{};
    std::optional<Spread> spread{};
};

struct OpenStore {
    std::string place{};  // the path, or "memory"
    std::unique_ptr<Medium> medium{};
    std::unique_ptr<Store> store{};
    bool made = false;
    Duration took{};  // to open it

    [[nodiscard]] std::string describe() const;
};

// What the stores have in common.
struct OpenStores {
    std::vector<OpenStore> stores{};  // by their numbers
    Spread spread = Spread::Even;
    std::uint32_t chunk_bytes = 0;
    SipKey placement_key{};    // placement_key_of() the word that clients learn
    SipKey cluster_key{};      // of what only the stores know, so that it is the same after each start; or as wished
    std::uint32_t shards = 1;  // of the file system

    [[nodiscard]] ClusterFacts facts() const;
};

// A medium whose beginning is zeros gets a new store. Errors: one that has something else and no store; a store of
// another file system, another number, another chunk size or spread; some that have stores where others have none. With
// several nodes, what their stores have in common follows from the cluster's key.
Result<OpenStores> open_stores(const StoreWishes& wishes);

}  // namespace cairn::fs
