// The required content of a store: operations applied to a store and to plain maps.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/sim/random.hpp"
#include "tests/unit/fs_store/store_facts.hpp"

namespace cairn::fs {

// Random operations on few objects, so that they interfere.
class StoreModel {
public:
    explicit StoreModel(std::uint64_t seed) : random_(seed) {}

    // Does one operation. A full store refuses some of them, and then has not changed.
    void step(Store& store) {
        Change change;
        Facts next = facts_;
        Need need = Need::Grows;
        auto chunks = chunks_;
        bool refused = false;
        for (std::uint64_t i = random_.between(1, 3); i != 0 && !refused; --i) {
            if (const std::uint64_t kind = random_.below(10); kind < kKinds.size()) {
                (this->*kKinds[kind])(change, next);
            }
        }
        if (change.records().empty() || random_.below(2) == 0) {
            const std::uint64_t what = random_.below(8);
            refused = what < 6 ? !write(store, change, next) : !cut(store, change, next);
            need = what < 6 ? Need::Grows : Need::Shrinks;
        }
        if (refused || !store.apply(change, need)) {
            ++refusals;
            chunks_ = std::move(chunks);
            return;
        }
        facts_ = std::move(next);
        ++steps;
    }
    [[nodiscard]] const Facts& facts() const noexcept { return facts_; }
    [[nodiscard]] const std::map<ChunkId, std::vector<std::uint8_t>>& chunks() const noexcept { return chunks_; }
    // Goes back to an earlier content.
    void restore(const Facts& facts, const std::map<ChunkId, std::vector<std::uint8_t>>& chunks) {
        facts_ = facts;
        chunks_ = chunks;
    }

    std::uint64_t steps = 0;
    std::uint64_t refusals = 0;
    std::uint32_t most_files = 12;
    bool prefers_small = true;  // prefers small writes

private:
    [[nodiscard]] FileId some_file() { return {random_.below(most_files), 7}; }
    [[nodiscard]] std::string some_name() {
        std::string name = "n" + std::to_string(random_.below(8));
        name.resize(random_.below(8) == 0 ? kLongestName : name.size(), 'x');
        return name;
    }
    void put_inode(Change& change, Facts& facts) {
        Inode inode;
        inode.id = some_file();
        inode.mode = static_cast<std::uint32_t>(random_.below(1U << 16U));
        inode.size = random_.below(1U << 30U);
        inode.links = static_cast<std::uint32_t>(random_.below(9));
        inode.modified_ns = static_cast<std::int64_t>(random_.below(1U << 30U)) - 1000;
        inode.leases = random_.below(3);
        const std::string target(random_.below(20) == 0 ? kLongestPath : 0, 't');
        inode.target = target;
        change.put(inode);
        facts["inode " + text_of(inode.id)] = text_of(inode, target);
    }
    void drop_inode(Change& change, Facts& facts) {
        const FileId id = some_file();
        change.put(Gone{id});
        facts.erase("inode " + text_of(id));
    }
    void put_name(Change& change, Facts& facts) {
        const std::string name = some_name();
        const Dentry dentry{some_file(), some_file(), static_cast<std::uint32_t>(random_.below(1U << 16U)), name};
        change.put(dentry);
        facts["name " + text_of(dentry.parent) + " " + name] =
            text_of(dentry.child) + " " + std::to_string(dentry.mode);
    }
    void drop_name(Change& change, Facts& facts) {
        const std::string name = some_name();
        const FileId parent = some_file();
        change.put(Gone{Gone::Name{parent, name}});
        facts.erase("name " + text_of(parent) + " " + name);
    }
    void put_answer(Change& change, Facts& facts) {
        const AnswerRecord answer{{random_.below(4), static_cast<std::uint32_t>(random_.below(3))},
                                  static_cast<std::uint32_t>(random_.below(1U << 30U)),
                                  -static_cast<std::int64_t>(random_.below(100))};
        const std::string name = "answer " + std::to_string(answer.id.client) + " " + std::to_string(answer.id.slot);
        if (random_.below(4) == 0) {
            change.put(Gone{answer.id});
            facts.erase(name);
        } else {
            change.put(answer);
            facts[name] = std::to_string(answer.sequence) + " " + std::to_string(answer.result);
        }
    }
    void put_intent(Change& change, Facts& facts) {
        const std::uint64_t number = random_.below(5);
        const std::vector<std::uint8_t> said(random_.below(40), static_cast<std::uint8_t>(number));
        if (random_.below(2) == 0) {
            change.put(Gone{Gone::IntentNumber{number}});
            facts.erase("intent " + std::to_string(number));
        } else {
            change.put(Intent{number, said});
            facts["intent " + std::to_string(number)] = text_of(said);
        }
    }
    // Writes. Bytes of a chunk of another generation are dropped.
    bool write(Store& store, Change& change, Facts& facts) {
        const ChunkId id{some_file(), static_cast<std::uint32_t>(random_.below(2))};
        const ChunkState* const state = store.tables().chunk(id);
        const std::uint64_t generation = (state == nullptr ? 0 : state->generation) + (random_.below(8) == 0 ? 1 : 0);
        const auto offset = static_cast<std::uint32_t>(random_.below(store.chunk_bytes()));
        const std::uint32_t most = store.chunk_bytes() - offset;
        const auto bytes = static_cast<std::uint32_t>(
            random_.between(1, prefers_small ? std::min<std::uint32_t>(most, 12'000) : most));
        std::optional<PendingWrite> write = store.begin_write(id, generation, offset, bytes);
        if (!write) {
            return false;
        }
        std::vector<std::uint8_t> data(bytes);
        for (std::uint8_t& each : data) {
            each = static_cast<std::uint8_t>(random_.below(256));
        }
        if (random_.below(16) == 0) {
            store.give_up(*write);
            return false;
        }
        put_bytes(store, *write, data);
        store.finish_write(*write, change);
        std::vector<std::uint8_t>& content = chunks_[id];
        if (state == nullptr || state->generation != generation) {
            content.clear();
        }
        content.resize(store.chunk_bytes());
        std::copy(data.begin(), data.end(), content.begin() + offset);
        facts[name_of(id)] = text_of_chunk(generation, content);
        return true;
    }
    // Puts bytes as a client's copy, in two parts, or as an RDMA READ.
    void put_bytes(Store& store, PendingWrite& write, std::span<const std::uint8_t> data) {
        const auto first = static_cast<std::uint32_t>(random_.below(data.size() + 1));
        if (random_.below(2) == 0) {
            store.data().fill(write, 0, data.first(first));
            store.data().fill(write, first, data.subspan(first));
        } else {
            store.data().for_each_piece(write, [&data](std::span<std::uint8_t> memory) {
                std::memcpy(memory.data(), data.data(), memory.size());
                data = data.subspan(memory.size());
            });
        }
    }
    bool cut(Store& store, Change& change, Facts& facts) {
        const ChunkId id{some_file(), static_cast<std::uint32_t>(random_.below(2))};
        const ChunkState* const state = store.tables().chunk(id);
        if (state == nullptr) {
            return false;
        }
        const auto bytes = static_cast<std::uint32_t>(random_.below(3) == 0 ? 0 : random_.below(store.chunk_bytes()));
        const std::uint64_t generation = state->generation + 1;
        if (!store.cut(id, generation, bytes, change)) {
            return false;
        }
        std::vector<std::uint8_t>& content = chunks_[id];
        std::fill(content.begin() + bytes, content.end(), std::uint8_t{0});
        const bool left = std::any_of(state->extents.begin(), state->extents.end(),
                                      [bytes](const Extent& each) { return each.at * kBlockBytes < bytes; });
        if (left) {
            facts[name_of(id)] = text_of_chunk(generation, content);
        } else {
            facts.erase(name_of(id));
            chunks_.erase(id);
        }
        return true;
    }

    static constexpr std::array kKinds{&StoreModel::put_inode,  &StoreModel::put_name,   &StoreModel::drop_name,
                                       &StoreModel::drop_inode, &StoreModel::put_answer, &StoreModel::put_intent};
    sim::Random random_;
    Facts facts_;
    std::map<ChunkId, std::vector<std::uint8_t>> chunks_;
};

}  // namespace cairn::fs
