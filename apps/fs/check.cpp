// Commands that look at all entries of the shards: fsck, scrub.
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "apps/fs/judge.hpp"
#include "apps/fs/session.hpp"

namespace cairn::fstool {

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kLooks = 3;       // looks that must agree on a fault
constexpr std::uint32_t kMostLooks = 30;  // while changes are under way
constexpr std::uint32_t kBlocksAtOnce = 256;

// Asks a shard for its entries until it has sent all. Returns an errno.
template <class Thing, class MakeRequest, class Take>
int for_each_thing(fs::Client& client, fs::ShardNumber shard, const MakeRequest& make_request, const Take& take,
                   Counted& counted) {
    fs::CensusCursor at;
    for (bool is_end = false; !is_end;) {
        const fs::Outcome<Bytes> answer = fs::ask(client, shard, make_request(at)).wait();
        if (!answer.ok()) {
            return answer.error;
        }
        fs::CensusReader reader(answer.value);
        while (const auto thing = reader.template next<Thing>()) {
            take(*thing);
        }
        is_end = reader.facts().is_end;
        if (!reader.is_whole() || (!is_end && reader.facts().next == at)) {
            return EIO;
        }
        at = reader.facts().next;
        counted.under_way += reader.facts().under_way;
        counted.blocks += reader.facts().blocks;
    }
    return 0;
}

template <class Thing, class Take>
int count_kind(fs::Client& client, fs::ShardNumber shard, fs::CensusKind kind, const Take& take, Counted& counted) {
    return for_each_thing<Thing>(
        client, shard,
        [kind](const fs::CensusCursor& at) {
            return fs::CensusRequest{kind, at};
        },
        take, counted);
}

int count_names(fs::Client& client, fs::ShardNumber shard, Counted& counted) {
    return count_kind<fs::CountedName>(
        client, shard, fs::CensusKind::Names,
        [&](const fs::CountedName& name) {
            counted.names.push_back({name, std::string(name.name), shard});
            counted.names.back().facts.name = {};
        },
        counted);
}

int count_shard(fs::Client& client, fs::ShardNumber shard, Counted& counted) {
    int error = count_names(client, shard, counted);
    if (error == 0) {
        error = count_kind<fs::CountedFile>(
            client, shard, fs::CensusKind::Files,
            [&](const fs::CountedFile& file) {
                counted.files.push_back({file, shard});
            },
            counted);
    }
    if (error == 0) {
        error = count_kind<fs::CountedChunk>(
            client, shard, fs::CensusKind::Chunks,
            [&](const fs::CountedChunk& chunk) {
                counted.chunks.push_back({chunk, shard});
            },
            counted);
    }
    return error;
}

// Calls count(shard) for all shards. Prints an error, and returns false.
template <class Count>
bool at_all_shards(Session& session, const Count& count) {
    const std::uint32_t shards = session.fs.view()->table().shards();
    for (std::uint32_t shard = 0; shard != shards; ++shard) {
        const int error = count(static_cast<fs::ShardNumber>(shard));
        if (!session.check("ask shard", std::to_string(shard), error)) {
            return false;
        }
    }
    return true;
}

void keep_those_again(std::vector<Finding>& findings, const std::vector<Finding>& again) {
    std::set<std::string> keys;
    for (const Finding& finding : again) {
        keys.insert(finding.key);
    }
    std::erase_if(findings, [&](const Finding& finding) { return !keys.contains(finding.key); });
}

}  // namespace

void check_all(Session& session) {
    std::vector<Finding> findings;
    Counted counted;
    for (std::uint32_t look = 0; look == 0 || !findings.empty(); ++look) {
        const bool waits = counted.under_way != 0 && look < kMostLooks;
        if (look >= kLooks && !waits) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(look == 0 ? 0 : 300));
        counted = {};
        if (!at_all_shards(session, [&](fs::ShardNumber shard) { return count_shard(session.fs, shard, counted); })) {
            return;
        }
        std::vector<Finding> found = judge(counted, *session.fs.view());
        if (look == 0) {
            findings = std::move(found);
        } else {
            keep_those_again(findings, found);
        }
    }
    for (const Finding& finding : findings) {
        fmt::print("{}\n", finding.text);
    }
    fmt::print("{} files, {} names, {} chunks: {}\n", counted.files.size(), counted.names.size(), counted.chunks.size(),
               findings.empty() ? "nothing is wrong" : fmt::format("{} things are wrong", findings.size()));
    session.set_status(findings.empty() ? 0 : 1);
}

void scrub_all(Session& session) {
    std::map<fs::FileId, std::uint64_t> damaged;  // blocks
    Counted counted;
    const auto scrub = [&](fs::ShardNumber shard) {
        return for_each_thing<fs::CountedChunk>(
            session.fs, shard,
            [](const fs::CensusCursor& at) {
                return fs::ScrubRequest{at, kBlocksAtOnce};
            },
            [&](const fs::CountedChunk& chunk) { damaged[chunk.file] += chunk.blocks; }, counted);
    };
    const auto names = [&](fs::ShardNumber shard) { return count_names(session.fs, shard, counted); };
    if (!at_all_shards(session, scrub) || (!damaged.empty() && !at_all_shards(session, names))) {
        return;
    }
    const Paths paths(counted.names, session.fs.view()->welcome().root);
    std::uint64_t blocks = 0;
    for (const auto& [file, count] : damaged) {
        fmt::print("{}: {} damaged blocks\n", paths.of(file), count);
        blocks += count;
    }
    fmt::print(
        "{} blocks compared with their checksums: {}\n", counted.blocks,
        damaged.empty() ? "nothing is damaged" : fmt::format("{} are damaged, of {} files", blocks, damaged.size()));
    session.set_status(damaged.empty() ? 0 : 1);
}

}  // namespace cairn::fstool
