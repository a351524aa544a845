#include "fs/daemon/stores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "fs/medium/backends.hpp"
#include "fs/store/layout.hpp"
#include "lib/base/assert.hpp"
#include "lib/base/secret.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30U;  // capacity of a store in memory, by default
constexpr std::uint32_t kChunkBytes = StoreShape{}.chunk_bytes;

// The purpose of a derived key.
enum class KeyOf : std::uint64_t { Placement = 1, Cluster, Names };

std::uint64_t derived(const SipKey& secret, KeyOf what, std::uint64_t word) noexcept {
    return sip_hash(secret, static_cast<std::uint64_t>(what), word);
}

std::uint32_t number_of(const StoreWishes& wishes, std::uint32_t place) noexcept {
    return place * wishes.nodes + wishes.node;
}

// The contents of a place where a store may be.
struct Found {
    SuperblockFault fault = SuperblockFault::NoStore;
    Superblock superblock{};
    bool is_zero = false;  // there is no store, and nothing else

    [[nodiscard]] StoreName name() const noexcept { return StoreName::of(superblock.store_id); }
};

const char* word_of(Spread spread) noexcept {
    return spread == Spread::Koyama ? "koyama" : "even";
}

const char* durability_of(Granularity granularity) noexcept {
    switch (granularity) {
        case Granularity::Byte:
        case Granularity::CacheLine:
            return "durable when answered";
        case Granularity::Page:
            return "durable by fsync";
        case Granularity::None:
            break;
    }
    return "nothing survives the daemon";
}

std::string chunk_text(std::uint32_t bytes) {
    return bytes % (1U << 20U) == 0 ? fmt::format("{} MiB", bytes >> 20U) : fmt::format("{} KiB", bytes >> 10U);
}

Result<OpenStore> open_medium(const StoreWishes& wishes, std::uint32_t number) {
    const std::string& given = wishes.pmem_path.empty() ? wishes.data_path : wishes.pmem_path;
    OpenStore store;
    store.place = given.empty() ? "memory" : wishes.shards == 1 ? given : fmt::format("{}.{}", given, number);
    const auto bytes = static_cast<std::size_t>(wishes.capacity_bytes);
    Result<std::unique_ptr<Medium>> medium =
        given.empty()              ? make_memory(bytes != 0 ? bytes : kMemoryBytes)
        : wishes.pmem_path.empty() ? open_file(store.place, bytes)
                                   : open_pmem(store.place, bytes, {.allow_fake = wishes.allow_fake_pmem});
    if (!medium.ok()) {
        return medium.error();
    }
    store.medium = std::move(medium).value();
    return store;
}

// Looks at the superblocks only. A store that was not made completely is no store, and is made again.
Found look(const Medium& medium) {
    Found found;
    found.fault = read_superblock(medium.memory(), found.superblock);
    const auto begin = medium.memory().first(std::size_t{Layout::kSuperblocks} * kBlockBytes);
    found.is_zero = std::ranges::all_of(begin, [](std::uint8_t byte) { return byte == 0; });
    return found;
}

Status judge_all(const std::vector<OpenStore>& stores, const std::vector<Found>& found) {
    std::size_t empty = 0;
    for (std::size_t i = 0; i != stores.size(); ++i) {
        if (found[i].fault == SuperblockFault::NoStore && !found[i].is_zero) {
            return Error{fmt::format("'{}' has something that is no store", stores[i].place),
                         "name another path, or say --format: what it has is lost then"};
        }
        empty += found[i].is_zero ? 1U : 0U;
    }
    if (empty != 0 && empty != stores.size()) {
        const auto missing = std::ranges::find_if(found, &Found::is_zero) - found.begin();
        return Error{fmt::format("'{}' is empty, and others of the file system have stores",
                                 stores[static_cast<std::size_t>(missing)].place),
                     "bring its store back, or say --format: what the others have is lost then"};
    }
    return Nothing{};
}

Status judge_place(const std::string& place, const Found& found, const Found& first, std::uint32_t number,
                   const StoreWishes& wishes) {
    const StoreName name = found.name();
    const std::uint32_t shards = wishes.shards * wishes.nodes;
    if (name.shards != shards) {
        return Error{fmt::format("'{}' is of a file system of {} daemons, not {}", place, name.shards, shards),
                     wishes.nodes == 1 ? fmt::format("say --daemons-per-node {}", name.shards)
                                       : std::string("say --nodes and --daemons-per-node as when it was made")};
    }
    if (wishes.nodes > 1 && found.superblock.name_key != derived(*wishes.cluster_key, KeyOf::Names, 0)) {
        return Error{fmt::format("'{}' was made with another key file", place), "give --key-file as it was then"};
    }
    if (name.number != number ||
        (first.fault == SuperblockFault::None &&
         (name.file_system != first.name().file_system || found.superblock.name_key != first.superblock.name_key))) {
        return Error{fmt::format("'{}' is store {} of {} file system", place, name.number,
                                 name.file_system == first.name().file_system ? "the" : "another"),
                     "give each store the name that it had"};
    }
    return Nothing{};
}

Status judge_wishes(const std::string& place, const Found& found, const StoreWishes& wishes) {
    const std::uint32_t chunk_bytes = found.superblock.chunk_bytes;
    if (wishes.chunk_bytes && *wishes.chunk_bytes != chunk_bytes) {
        return Error{fmt::format("'{}' has chunks of {}, not of {}", place, chunk_text(chunk_bytes),
                                 chunk_text(*wishes.chunk_bytes)),
                     "leave --chunk-size out, or make a new store (--format)"};
    }
    if (wishes.spread && *wishes.spread != found.name().spread) {
        return Error{fmt::format("the names of '{}' are placed by {}, not by {}", place, word_of(found.name().spread),
                                 word_of(*wishes.spread)),
                     "leave --placement out, or make a new store (--format)"};
    }
    return Nothing{};
}

// Judges each store before it opens the next one, so that no media are made for too many daemons.
Status look_at_all(std::vector<OpenStore>& stores, std::vector<Found>& found, const StoreWishes& wishes) {
    for (std::uint32_t i = 0; i != wishes.shards; ++i) {
        Result<OpenStore> opened = open_medium(wishes, i);
        if (!opened.ok()) {
            return opened.error();
        }
        stores.push_back(std::move(opened).value());
        found.push_back(look(*stores.back().medium));
        if (found[i].fault != SuperblockFault::None || wishes.format) {
            continue;
        }
        const std::string& place = stores[i].place;
        for (const Status& judged : {judge_place(place, found[i], found[0], number_of(wishes, i), wishes),
                                     judge_wishes(place, found[i], wishes)}) {
            if (!judged.ok()) {
                return judged;
            }
        }
    }
    return wishes.format ? Status(Nothing{}) : judge_all(stores, found);
}

Status open_all(std::vector<OpenStore>& stores) {
    for (OpenStore& each : stores) {
        const auto begun = std::chrono::steady_clock::now();
        Result<std::unique_ptr<Store>> opened = Store::open(*each.medium);
        if (!opened.ok()) {
            return Error{fmt::format("'{}': {}", each.place, opened.error().what), opened.error().remedy};
        }
        each.store = std::move(opened).value();
        each.took = nanoseconds(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count());
    }
    return Nothing{};
}

Status make_all(std::vector<OpenStore>& stores, const StoreWishes& wishes) {
    SipKey chance = draw_secret();
    if (wishes.nodes > 1) {
        chance[1] = derived(*wishes.cluster_key, KeyOf::Names, 0);  // the same for all stores of this cluster's key
    }
    StoreName name{chance[0] & StoreName::kMostChance, wishes.spread.value_or(Spread::Even),
                   wishes.shards * wishes.nodes, wishes.node};
    for (OpenStore& each : stores) {
        Result<std::unique_ptr<Store>> made =
            Store::format(*each.medium, {wishes.chunk_bytes.value_or(kChunkBytes), name.id(), chance[1]});
        if (!made.ok()) {
            return Error{fmt::format("'{}': {}", each.place, made.error().what), made.error().remedy};
        }
        each.store = std::move(made).value();
        each.made = true;
        name.number += wishes.nodes;
    }
    return Nothing{};
}

}  // namespace

Result<OpenStores> open_stores(const StoreWishes& wishes) {
    CAIRN_ASSERT(wishes.nodes == 1 || wishes.cluster_key);
    OpenStores all;
    std::vector<Found> found;
    if (const Status looked = look_at_all(all.stores, found, wishes); !looked.ok()) {
        return looked.error();
    }
    const bool make = wishes.format || found.front().is_zero;
    const Status done = make ? make_all(all.stores, wishes) : open_all(all.stores);
    if (!done.ok()) {
        return done.error();
    }
    const Found first = look(*all.stores.front().medium);
    const StoreName name = first.name();
    const SipKey secret = wishes.nodes > 1 ? *wishes.cluster_key : SipKey{first.superblock.name_key, name.file_system};
    all.spread = name.spread;
    all.chunk_bytes = first.superblock.chunk_bytes;
    all.placement_key = placement_key_of(derived(secret, KeyOf::Placement, 0));
    all.cluster_key =
        wishes.cluster_key.value_or(SipKey{derived(secret, KeyOf::Cluster, 0), derived(secret, KeyOf::Cluster, 1)});
    all.shards = name.shards;
    return all;
}

ClusterFacts OpenStores::facts() const {
    return {spread, shards, placement_key, cluster_key, SlotTable(shards)};
}

std::string OpenStore::describe() const {
    const auto mib = [](std::uint32_t blocks) {
        return static_cast<double>(std::uint64_t{blocks} * kBlockBytes) / (1U << 20U);
    };
    const StoreUse use = store->use();
    return fmt::format(
        "{}; room for {:.1f} MiB, {:.1f} MiB free, chunks of {}; {}; {}", medium->describe(), mib(use.blocks),
        mib(use.free_blocks), chunk_text(store->chunk_bytes()), durability_of(medium->granularity()),
        made ? std::string("a new store")
             : fmt::format("opened in {:.1f} ms: {} files, {} chunks", static_cast<double>(took.ns) / 1e6,
                           store->tables().inodes().size(), store->tables().chunks().size()));
}

}  // namespace cairn::fs
