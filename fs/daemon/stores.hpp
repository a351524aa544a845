// The stores of a daemon, each on a medium of its own. Stores that exist are opened; others are made.
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
    std::string data_path{};  // a file
    std::string pmem_path{};  // or persistent memory; without either path: memory
    bool allow_fake_pmem = false;
    std::uint64_t capacity_bytes = 0;     // of each store; 0: all that there is
    std::uint32_t shards = 1;             // in this process; with several, a path gets a dot and the store's place
    std::uint32_t nodes = 1;              // processes, each with that many shards
    std::uint32_t node = 0;               // this one; the store at place p is shard p * nodes + node
    std::optional<SipKey> cluster_key{};  // set if there are several nodes (asserted)
    bool format = false;                  // makes new stores; old contents are lost
    // For stores that are made; existing stores must agree. Nothing: their own value, or the default.
    std::optional<std::uint32_t> chunk_bytes{};
    std::optional<Spread> spread{};
};

struct OpenStore {
    std::string place{};  // the path, or "memory"
    std::unique_ptr<Medium> medium{};
    std::unique_ptr<Store> store{};
    bool made = false;
    Duration took{};  // time to open it

    [[nodiscard]] std::string describe() const;
};

// The stores and their common facts.
struct OpenStores {
    std::vector<OpenStore> stores{};  // by number
    Spread spread = Spread::Even;
    std::uint32_t chunk_bytes = 0;
    SipKey placement_key{};    // placement_key_of() the word that clients get
    SipKey cluster_key{};      // derived from the stores' secrets, so that it survives restarts; or the wished one
    std::uint32_t shards = 1;  // of the file system

    [[nodiscard]] ClusterFacts facts() const;
};

// Opens the stores. A medium that begins with zeros gets a new store. Errors: a medium that has something else; a store
// of another file system, number, chunk size or spread; a mix of stores and empty media. With several nodes, the
// stores' common secrets follow from the cluster's key.
Result<OpenStores> open_stores(const StoreWishes& wishes);

}  // namespace cairn::fs
