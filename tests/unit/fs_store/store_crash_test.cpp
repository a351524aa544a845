// Power fails at any fence of a store, and again while it recovers. The store then has the state after one of the
// operations since the last commit.
#include "tests/support/environment.hpp"
#include "tests/support/recording_medium.hpp"
#include "tests/unit/fs_store/store_model.hpp"

namespace cairn::fs {
namespace {

class StoreCrash : public testing::Test {
protected:
    [[nodiscard]] static StoreShape shape() { return {StoreShape::kLeastChunkBytes, 0x1234567, 99}; }
    void begin(std::uint64_t seed, Granularity granularity = Granularity::CacheLine) {
        granularity_ = granularity;
        random_ = sim::Random(seed);
        model_.emplace(seed);
        medium_ = test::RecordingMedium::of_zeros(kStoreBytes, granularity);
        store_ = Store::format(*medium_, shape()).value();
        moments_ = {{model_->facts(), model_->chunks()}};
    }
    // Does some operations, then a commit. The power may fail at one of its fences.
    void turn() {
        for (std::uint64_t i = random_.between(1, 6); i != 0; --i) {
            model_->step(*store_);
            moments_.emplace_back(model_->facts(), model_->chunks());
        }
        std::optional<test::RecordingMedium::Image> image;
        std::uint64_t fences = random_.below(6);
        if (random_.below(3) == 0) {
            medium_->set_on_fence([&] {
                if (fences-- == 0) {
                    image = medium_->crash(random_);
                }
            });
        }
        store_->commit();
        // Any of the pages written since the last sync may be durable.
        const bool paged = granularity_ == Granularity::Page;
        const bool synced = !paged || random_.below(3) == 0;
        if (paged && synced) {
            ASSERT_TRUE(store_->sync().ok());
        } else if (paged && random_.below(4) == 0) {
            image = medium_->crash(random_);
        }
        while (random_.below(3) != 0 && store_->clean(static_cast<std::uint32_t>(random_.between(1, 100'000)))) {
        }
        medium_->set_on_fence({});
        if (image) {
            restart(std::move(*image));
        } else if (synced) {
            moments_.erase(moments_.begin(), moments_.end() - 1);
        }
    }
    void restart(test::RecordingMedium::Image image) {
        ++crashes;
        store_.reset();
        // The power fails again while the store is opened.
        for (std::uint64_t again = random_.below(3); again != 0; --again) {
            medium_ = test::RecordingMedium::restart(std::move(image), granularity_);
            test::RecordingMedium::Image next;
            std::uint64_t fences = random_.below(4);
            medium_->set_on_fence([&] {
                if (fences-- == 0) {
                    next = medium_->crash(random_);
                }
            });
            auto opened = Store::open(*medium_);
            ASSERT_TRUE(opened.ok()) << opened.error().text();
            image = next.empty() ? medium_->crash_none() : std::move(next);
        }
        medium_ = test::RecordingMedium::restart(std::move(image), granularity_);
        auto opened = Store::open(*medium_);
        ASSERT_TRUE(opened.ok()) << opened.error().text();
        store_ = std::move(opened).value();
        store_->check();
        const Facts facts = facts_of(*store_);
        const auto found =
            std::find_if(moments_.begin(), moments_.end(), [&](const auto& each) { return each.first == facts; });
        ASSERT_NE(found, moments_.end()) << "neither old nor new";
        model_->restore(found->first, found->second);
        moments_ = {*found};
    }

    Granularity granularity_ = Granularity::CacheLine;
    sim::Random random_{1};
    std::optional<StoreModel> model_;
    std::unique_ptr<test::RecordingMedium> medium_;
    std::unique_ptr<Store> store_;
    // the content after each operation since the last commit
    std::vector<std::pair<Facts, std::map<ChunkId, std::vector<std::uint8_t>>>> moments_;
    std::uint64_t crashes = 0;
};

TEST_F(StoreCrash, EachOperationIsOldOrNew) {
    const std::uint64_t first = test::first_seed();
    const std::uint64_t runs = test::histories(10, 60);
    std::uint64_t crashed = 0;
    for (std::uint64_t seed = first; seed < first + runs && !testing::Test::HasFatalFailure(); ++seed) {
        SCOPED_TRACE("SIM_SEED=" + std::to_string(seed) + " SIM_RUNS=1");
        begin(seed);
        for (int turns = 0; turns < 60 && !testing::Test::HasFatalFailure(); ++turns) {
            turn();
        }
        store_->check();
        EXPECT_EQ(facts_of(*store_), model_->facts());
        crashed += std::exchange(crashes, 0);
    }
    EXPECT_GT(crashed, runs * 4);
}

// Pages become durable in any order until a sync.
TEST_F(StoreCrash, AlsoOnAMediumOfPages) {
    std::uint64_t crashed = 0;
    for (std::uint64_t seed = 1; seed < 11 && !testing::Test::HasFatalFailure(); ++seed) {
        SCOPED_TRACE(seed);
        begin(seed, Granularity::Page);
        for (int turns = 0; turns < 60 && !testing::Test::HasFatalFailure(); ++turns) {
            turn();
        }
        ASSERT_TRUE(store_->sync().ok());
        store_->check();
        crashed += std::exchange(crashes, 0);
    }
    EXPECT_GT(crashed, 50U);
}

// The log goes round the region several times.
TEST_F(StoreCrash, AlsoWhileTheLogIsCleaned) {
    begin(4711);
    for (int turns = 0; turns < 300 && !testing::Test::HasFatalFailure(); ++turns) {
        for (int i = 0; i < 40; ++i) {
            Change change;
            Inode inode;
            inode.id = {100 + static_cast<std::uint64_t>(i), 1};
            const std::string target(4000, static_cast<char>('a' + turns % 26));
            inode.target = target;
            change.put(inode);
            ASSERT_TRUE(store_->apply(change, Need::Grows));
        }
        store_->commit();
        (void)store_->clean(400'000);
        Facts facts = model_->facts();
        auto chunks = model_->chunks();
        for (const auto& [key, value] : facts_of(*store_)) {
            if (key.starts_with("inode 1") && key.size() > 8) {
                facts[key] = value;
            }
        }
        model_->restore(facts, chunks);
        moments_ = {{facts, chunks}};
        turn();
    }
    EXPECT_LT(store_->use().log_units, 20U);
    EXPECT_GT(crashes, 30U);
}

// Only the second entry of a turn reached the medium. After the crash the first one's request is repeated and the
// second one's is not, so the second entry must stay without effect.
TEST_F(StoreCrash, WhatStandsBehindTheLogsEndNeverComesBack) {
    begin(1);
    const auto put = [this](std::uint64_t serial) {
        Change change;
        Inode inode;
        inode.id = {serial, 1};
        change.put(inode);
        ASSERT_TRUE(store_->apply(change, Need::Grows));
    };
    put(1);
    store_->commit();
    put(2);
    put(3);
    auto image = medium_->crash_none();
    store_->commit();
    const std::uint64_t second = store_->tables().inode({2, 1})->spot.at;
    const auto whole = medium_->crash_none();
    const auto end = static_cast<std::ptrdiff_t>(store_->tables().inode({3, 1})->spot.at + 4096);
    std::copy(whole.begin() + static_cast<std::ptrdiff_t>(second + 64), whole.begin() + end,
              image.begin() + static_cast<std::ptrdiff_t>(second + 64));
    for (int again = 0; again < 3; ++again) {
        store_.reset();
        medium_ = test::RecordingMedium::restart(image);
        store_ = Store::open(*medium_).value();
        EXPECT_EQ(store_->tables().inode({3, 1}), nullptr);
        put(2);
        store_->commit();
        image = medium_->crash_none();
    }
}

}  // namespace
}  // namespace cairn::fs
