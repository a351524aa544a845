// Clients change names and write to files at all shards at once, while shards end and come back.
#include <algorithm>

#include "tests/support/environment.hpp"
#include "tests/unit/fs_shard/cluster_fixture.hpp"
#include "tests/unit/fs_shard/storm_writer.hpp"

namespace cairn::fs {
namespace {

// A client with several calls under way, one in each slot. It uses few names, so that calls meet. If a call's shard has
// ended, the call is made again with the same numbers once the shard is back.
class StormClient {
public:
    static constexpr std::uint32_t kSlots = 4;

    StormClient(test::ShardCluster& cluster, std::uint64_t number, std::uint64_t seed)
        : cluster_(cluster), random_(seed), client_{number} {}

    void step() {
        for (std::uint32_t slot = 0; slot != kSlots; ++slot) {
            Under& under = under_[slot];
            if (under.token != 0 && cluster_.is_answered(under.token)) {
                take(under);
            }
            if (under.token == 0 && !stops && random_.below(4) == 0) {
                begin(slot);
            }
        }
    }
    // Sends the calls to a shard that has come back again.
    void resend(ShardNumber shard) {
        for (std::uint32_t slot = 0; slot != kSlots; ++slot) {
            Under& under = under_[slot];
            if (under.token != 0 && under.to == shard && !cluster_.is_answered(under.token)) {
                under.token = cluster_.send_as(client_, under.to, under.request, slot, under.sequence);
                ++resent;
            }
        }
    }
    [[nodiscard]] bool is_idle() const {
        return std::ranges::all_of(under_, [](const Under& under) { return under.token == 0; });
    }
    // Returns the errors that no well-formed call within the limits may get.
    [[nodiscard]] const std::map<std::int32_t, std::uint64_t>& errors() const noexcept { return errors_; }
    [[nodiscard]] const test::ShardClient& client() const noexcept { return client_; }

    bool stops = false;
    std::uint64_t resent = 0;

private:
    struct Under {
        CallToken token = 0;
        ShardNumber to = 0;
        std::uint32_t sequence = 0;
        Request request{};
        std::string name{};
        std::string to_name{};
        FileId file{};
        bool makes_directory = false;
    };

    void take(Under& under) {
        const std::vector<std::uint8_t> bytes = cluster_.take_answer(under.token);
        under.token = 0;
        AnswerHead head;
        FieldReader in(bytes);
        AnswerHead::fields(in, head);
        ++errors_[head.error];
        WalkAnswer answer;
        if (head.error == 0 && std::holds_alternative<CreateRequest>(under.request)) {
            ASSERT_TRUE(parse_answer(bytes, answer));
            std::vector<FileId>& known = under.makes_directory ? directories_ : files_;
            known.push_back(answer.attributes.id);
            if (known.size() > 12) {
                known.erase(known.begin() + (under.makes_directory ? 1 : 0));
            }
        }
    }
    void begin(std::uint32_t slot) {
        Under& under = under_[slot];
        const FileId in = some(directories_);
        const FileId to = some(directories_);
        under.name = some_name();
        under.to_name = some_name();
        under.to = cluster_.owner_of_name(in, under.name);
        under.makes_directory = random_.below(3) == 0;
        switch (random_.below(8)) {
            case 0:
            case 1:
            case 2:
                under.request = CreateRequest{
                    in, under.makes_directory ? S_IFDIR | 0777U : S_IFREG | 0666U, 0, true, under.name, {}};
                break;
            case 3:
            case 4:
                under.request = RemoveRequest{in, random_.below(2) == 0, under.name};
                break;
            case 5:
                under.request = LinkRequest{files_.empty() ? kRoot : some(files_), in, under.name};
                break;
            default:
                under.request = RenameRequest{in, to, random_.below(4) == 0, under.name, under.to_name};
                break;
        }
        under.sequence = ++client_.sequence;
        under.token = cluster_.send_as(client_, under.to, under.request, slot, under.sequence);
    }
    [[nodiscard]] FileId some(const std::vector<FileId>& ids) { return ids[random_.below(ids.size())]; }
    [[nodiscard]] std::string some_name() { return "n" + std::to_string(random_.below(6)); }

    test::ShardCluster& cluster_;
    sim::Random random_;
    test::ShardClient client_;
    std::array<Under, kSlots> under_{};
    std::vector<FileId> directories_{kRoot};
    std::vector<FileId> files_;
    std::map<std::int32_t, std::uint64_t> errors_;
};

struct Storm {
    explicit Storm(std::uint64_t seed)
        : cluster(2 + static_cast<std::uint32_t>(seed % 3), seed), random(seed ^ 0x5707) {
        for (std::uint64_t number = 1; number != 4; ++number) {
            clients.emplace_back(cluster, number, (seed * 8) + number);
        }
        for (std::uint64_t number = 4; number != 6; ++number) {
            writers.emplace_back(cluster, number, (seed * 8) + number);
        }
    }
    void end_some() {
        const auto shard = static_cast<ShardNumber>(random.below(cluster.size()));
        if (cluster.is_up(shard)) {
            cluster.end(shard);
            ++ends;
        }
    }
    void restart_some() {
        const auto shard = static_cast<ShardNumber>(random.below(cluster.size()));
        if (!cluster.is_up(shard)) {
            restart(shard);
        }
    }
    void restart(ShardNumber shard) {
        cluster.restart(shard);
        for (StormClient& client : clients) {
            client.resend(shard);
        }
        for (StormWriter& writer : writers) {
            writer.resend(shard);
        }
    }
    void step() {
        cluster.step();
        for (StormClient& client : clients) {
            client.step();
        }
        for (StormWriter& writer : writers) {
            writer.step();
        }
    }
    // Begins no new calls. All shards are there, and every call ends.
    void calm_down() {
        for (ShardNumber shard = 0; shard != cluster.size(); ++shard) {
            if (!cluster.is_up(shard)) {
                restart(shard);
            }
        }
        for (StormClient& client : clients) {
            client.stops = true;
        }
        for (StormWriter& writer : writers) {
            writer.stops = true;
        }
        for (int i = 0; i != 200 && !all_idle(); ++i) {
            cluster.pass(milliseconds(300));
            step();
        }
        EXPECT_TRUE(all_idle());
        for (const StormClient& client : clients) {
            cluster.forget(client.client());
        }
        for (const StormWriter& writer : writers) {
            cluster.forget(writer.client());
        }
        cluster.pass(seconds(30));
    }
    [[nodiscard]] bool all_idle() const {
        return std::ranges::all_of(clients, [](const StormClient& client) { return client.is_idle(); }) &&
               std::ranges::all_of(writers, [](const StormWriter& writer) { return writer.is_idle(); });
    }

    test::ShardCluster cluster;
    sim::Random random;
    std::vector<StormClient> clients;
    std::vector<StormWriter> writers;
    std::uint64_t ends = 0;
};

constexpr std::uint64_t kStorms = 39;

TEST(ClusterStorm, EndsWithAWholeFileSystem) {
    std::map<std::int32_t, std::uint64_t> errors;
    const std::uint64_t first = test::first_seed();
    for (std::uint64_t seed = first; seed != first + test::histories(kStorms); ++seed) {
        SCOPED_TRACE("SIM_SEED=" + std::to_string(seed) + " SIM_RUNS=1");
        Storm storm(seed);
        for (int i = 0; i != 3000; ++i) {
            storm.step();
        }
        storm.calm_down();
        test::check_cluster(storm.cluster);
        for (const StormClient& client : storm.clients) {
            for (const auto& [error, count] : client.errors()) {
                errors[error] += count;
            }
        }
        ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_EQ(errors[EIO] + errors[ETIMEDOUT] + errors[ESTALE] + errors[EAGAIN], 0U);
}

TEST(ClusterStorm, SurvivesTheDeathOfShards) {
    std::map<std::int32_t, std::uint64_t> errors;
    const std::uint64_t first = test::first_seed();
    for (std::uint64_t seed = first; seed != first + test::histories(kStorms); ++seed) {
        SCOPED_TRACE("SIM_SEED=" + std::to_string(seed) + " SIM_RUNS=1");
        Storm storm(seed);
        for (int i = 0; i != 4000; ++i) {
            if (storm.random.below(200) == 0) {
                storm.end_some();
            }
            if (storm.random.below(100) == 0) {
                storm.restart_some();
            }
            storm.step();
        }
        storm.calm_down();
        test::check_cluster(storm.cluster);
        for (const StormClient& client : storm.clients) {
            for (const auto& [error, count] : client.errors()) {
                errors[error] += count;
            }
        }
        ASSERT_FALSE(testing::Test::HasFailure());
    }
}

}  // namespace
}  // namespace cairn::fs
