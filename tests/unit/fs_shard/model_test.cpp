// A shard does the same as the model, call by call. After a crash it has the state that the model had at one of the
// moments since the last answers.
#include <algorithm>

#include "tests/support/environment.hpp"
#include "tests/unit/fs_shard/model_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardModel : public ModelTest {
protected:
    // Lets clients come back and open their files again, or not; then the grace period has passed.
    void come_back() {
        std::vector<std::pair<FileId, std::uint64_t>> opens = model_->opens();
        model_->close_all();
        for (test::ShardClient& client : clients_) {
            if (random_.below(5) == 0) {
                absent_.push_back(client.number);
                std::erase_if(opens, [&](const auto& each) { return each.second == client.number; });
                continue;
            }
            issue(client, 0, StatRequest{kRoot});
            for (const auto& [file, number] : opens) {
                if (number == client.number && !PosixModel::is_unnamed(file)) {
                    issue(client, 5, OpenRequest{file, 0});
                }
            }
        }
        answer_all();
    }
    void pass_grace() {
        rig_->pass(seconds(11));
        for (const std::uint64_t client : std::exchange(absent_, {})) {
            model_->forget_answers(client);
        }
        model_->drop_orphans();
        EXPECT_EQ(rig_->error_of(clients_[0], SyncRequest{}), 0);
        keep_moments();
    }
    void crash_in_turn();
    void recover(test::RecordingMedium::Image image, bool answered);
    void adopt(const PosixModel& moment);

    std::vector<std::uint64_t> absent_;
    std::uint64_t crashes_ = 0;
    std::uint64_t unanswered_ = 0;
    std::uint64_t moments_found_ = 0;  // other moments than the last one
};

// Takes a turn in which the power fails at one of its fences.
void ShardModel::crash_in_turn() {
    std::optional<test::RecordingMedium::Image> image;
    std::uint64_t fences = random_.below(3);
    bool answered = false;
    rig_->medium().set_on_fence([&] {
        if (fences-- == 0) {
            image = rig_->medium().crash(random_);
            answered = rig_->is_answered(pending_.back().token);
        }
    });
    issue_some();
    rig_->end_turn();
    rig_->medium().set_on_fence({});
    if (image) {
        recover(std::move(*image), answered);
    } else {
        check_answers();
        keep_moments();
    }
}

void ShardModel::recover(test::RecordingMedium::Image image, bool answered) {
    ++crashes_;
    if (answered) {
        check_answers();
        keep_moments();
    }
    for (std::uint64_t again = random_.below(2); again != 0; --again) {
        const auto medium = test::RecordingMedium::restart(std::move(image), rig_->medium().granularity());
        test::RecordingMedium::Image next;
        std::uint64_t fences = random_.below(4);
        medium->set_on_fence([&] {
            if (fences-- == 0) {
                next = medium->crash(random_);
            }
        });
        ASSERT_TRUE(Store::open(*medium).ok());
        image = next.empty() ? medium->crash_none() : std::move(next);
    }
    rig_->restart(std::move(image));
    syncs_ = 0;
    rig_->store().check();
    const std::vector<std::string> facts = facts_of(rig_->store(), false);
    const auto found = std::find_if(moments_.begin(), moments_.end(),
                                    [&](const PosixModel& moment) { return moment.facts(false) == facts; });
    if (found == moments_.end()) {
        compare(false);
        FAIL() << "neither old nor new";
    }
    moments_found_ += found + 1 == moments_.end() ? 0U : 1U;
    adopt(PosixModel(*found));
    const std::vector<Pending> lost = std::exchange(pending_, {});
    come_back();
    // Clients without an answer ask again.
    for (const Pending& each : lost) {
        ++unanswered_;
        const bool is_there = std::find(absent_.begin(), absent_.end(), each.client->number) == absent_.end();
        if (is_there && random_.below(2) == 0) {
            issue(*each.client, each.slot, each.request, each.sequence);
        }
    }
    if (!pending_.empty()) {
        answer_all();
    }
    pass_grace();
    compare(true);
}

// Continues the model from that moment. The shard has the ids of its objects, and lost a second of directories' times.
void ShardModel::adopt(const PosixModel& moment) {
    model_->go_back(moment);
    const Tables& tables = rig_->store().tables();
    std::vector<std::pair<FileId, FileId>> left{{kRoot, kRoot}};
    while (!left.empty()) {
        const auto [id, parent] = left.back();
        left.pop_back();
        const Attributes there = attributes_of(tables.inode(id)->inode);
        ModelNode& node = model_->nodes().at(id);
        node.attributes.modified_ns = there.modified_ns;
        node.attributes.changed_ns = there.changed_ns;
        const std::map<std::string, FileId> names = node.names;
        for (const auto& [name, child] : names) {
            const FileId named = tables.dentry(id, name)->child;
            if (PosixModel::is_unnamed(child) && model_->nodes().contains(child)) {
                model_->name(child, named);
            }
            left.emplace_back(named, id);
        }
    }
}

TEST_F(ShardModel, DoesWhatTheModelDoes) {
    const std::uint64_t first = test::first_seed();
    const std::uint64_t runs = test::histories(20, 60);
    for (std::uint64_t seed = first; seed < first + runs && !HasFailure(); ++seed) {
        SCOPED_TRACE("SIM_SEED=" + std::to_string(seed) + " SIM_RUNS=1");
        begin(seed);
        absent_.clear();
        for (int turns = 0; turns < 120 && !HasFailure(); ++turns) {
            issue_some();
            answer_all();
            if (turns % 4 == 0) {
                compare(false);
            }
            if (random_.below(20) == 0) {
                compare_as_client();
            } else if (random_.below(30) == 0) {
                const std::size_t client = random_.below(clients_.size());
                rig_->forget(clients_[client]);
                model_->forget(clients_[client].number);
                rig_->settle();
            } else if (random_.below(20) == 0) {
                ASSERT_TRUE(rig_->shard().settle().ok());
                rig_->restart();
                come_back();
                pass_grace();
                compare(true);
            } else if (random_.below(10) == 0) {
                rig_->pass(milliseconds(700));
            }
        }
        compare_as_client();
    }
}

TEST_F(ShardModel, AlsoWhenThePowerFails) {
    const std::uint64_t first = test::first_seed();
    const std::uint64_t runs = test::histories(20, 60);
    for (std::uint64_t seed = first; seed < first + runs && !HasFailure(); ++seed) {
        SCOPED_TRACE("SIM_SEED=" + std::to_string(seed) + " SIM_RUNS=1");
        begin(seed);
        absent_.clear();
        for (int turns = 0; turns < 60 && !HasFailure(); ++turns) {
            if (random_.below(2) == 0) {
                crash_in_turn();
            } else {
                issue_some();
                answer_all();
            }
        }
        if (!HasFailure()) {
            compare(false);
            compare_as_client();
        }
    }
    EXPECT_GT(crashes_, runs * 5);
    EXPECT_GT(unanswered_, runs * 5);
}

// Pages become durable in any order until a sync. Effects of calls answered before a sync survive.
TEST_F(ShardModel, AlsoOnAMediumOfPages) {
    const std::uint64_t first = test::first_seed();
    const std::uint64_t runs = test::histories(6, 20);
    for (std::uint64_t seed = first; seed < first + runs && !HasFailure(); ++seed) {
        SCOPED_TRACE("SIM_SEED=" + std::to_string(seed) + " SIM_RUNS=1");
        begin(seed, Granularity::Page);
        for (int turns = 0; turns < 100 && !HasFailure(); ++turns) {
            issue_some();
            answer_all();
            if (random_.below(6) == 0) {
                EXPECT_EQ(rig_->error_of(clients_[1], SyncRequest{}), 0);
                keep_moments();
            }
            if (random_.below(8) == 0) {
                recover(rig_->medium().crash(random_), false);
            }
        }
    }
    EXPECT_GT(crashes_, runs * 5);
    EXPECT_GT(moments_found_, runs);
}

}  // namespace
}  // namespace cairn::fs
