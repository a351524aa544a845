// The bytes that are accepted as a store, and as a record.
#include "tests/support/recording_medium.hpp"
#include "tests/unit/fs_store/store_model.hpp"

namespace cairn::fs {
namespace {

TEST(Records, OfNonsenseAreNone) {
    const auto reads = [](std::span<const Extent> extents) {
        std::vector<std::uint8_t> bytes;
        put_record(bytes, Chunk{{{1, 2}, 3}, 0, extents});
        RecordReader reader(bytes);
        const bool there = reader.next().has_value();
        EXPECT_NE(reader.failed(), there);
        return there;
    };
    EXPECT_TRUE(reads(std::array<Extent, 2>{Extent{0, {9, 2}}, Extent{2, {5, 1}}}));
    EXPECT_FALSE(reads(std::array<Extent, 2>{Extent{0, {9, 2}}, Extent{1, {5, 1}}})) << "they overlap";
    EXPECT_FALSE(reads(std::array<Extent, 1>{Extent{0, {9, 0}}}));
    std::vector<std::uint8_t> bytes;
    put_record(bytes, Dentry{{1, 1}, {2, 2}, 0, "name"});
    for (std::size_t length = 1; length < bytes.size(); ++length) {
        RecordReader cut(std::span<const std::uint8_t>(bytes).first(length));
        EXPECT_FALSE(cut.next().has_value()) << length;
        EXPECT_TRUE(cut.failed());
    }
    bytes[0] = 99;
    EXPECT_FALSE(RecordReader(bytes).next().has_value());
}

TEST(StoreOpen, RefusesWhatIsNoStore) {
    const auto medium = test::RecordingMedium::of_zeros(kStoreBytes);
    EXPECT_NE(Store::open(*medium).error().text().find("there is no store"), std::string::npos);
    const auto small = test::RecordingMedium::of_zeros(1U << 20U);
    EXPECT_FALSE(Store::open(*small).ok());
    EXPECT_FALSE(Store::format(*small, {}).ok());
    EXPECT_FALSE(Store::format(*medium, {3U << 16U, 1, 1}).ok());
    EXPECT_FALSE(Store::format(*medium, {32U << 10U, 1, 1}).ok());
    ASSERT_TRUE(Store::format(*medium, {}).ok());
    EXPECT_TRUE(Store::open(*medium).ok());
}

TEST(StoreOpen, RefusesAStoreOfAnotherLength) {
    const auto medium = test::RecordingMedium::of_zeros(kStoreBytes);
    ASSERT_TRUE(Store::format(*medium, {}).ok());
    auto image = medium->crash_none();
    image.resize(kStoreBytes + kUnitBytes);
    const auto longer = test::RecordingMedium::restart(image);
    EXPECT_NE(Store::open(*longer).error().text().find("blocks"), std::string::npos);
}

TEST(StoreOpen, OneDamagedSuperblockIsEnough) {
    const auto medium = test::RecordingMedium::of_zeros(kStoreBytes);
    ASSERT_TRUE(Store::format(*medium, {}).ok());
    for (const std::size_t copy : {std::size_t{0}, std::size_t{1}}) {
        auto image = medium->crash_none();
        image[copy * kBlockBytes + 20] ^= 1;
        const auto one = test::RecordingMedium::restart(image);
        EXPECT_TRUE(Store::open(*one).ok());
        image[(1 - copy) * kBlockBytes + 20] ^= 1;
        const auto both = test::RecordingMedium::restart(image);
        EXPECT_NE(Store::open(*both).error().text().find("damaged"), std::string::npos);
        image[copy * kBlockBytes + 8] ^= 3;
        image[(1 - copy) * kBlockBytes + 8] ^= 3;
        const auto other = test::RecordingMedium::restart(image);
        EXPECT_NE(Store::open(*other).error().text().find("another version"), std::string::npos);
    }
}

// No content of a former store comes back.
TEST(StoreOpen, ANewStoreIsEmpty) {
    const auto medium = test::RecordingMedium::of_zeros(kStoreBytes);
    auto old = Store::format(*medium, {StoreShape::kLeastChunkBytes, 1, 1}).value();
    StoreModel model(8);
    for (int i = 0; i < 100; ++i) {
        model.step(*old);
        old->commit();
    }
    old.reset();
    ASSERT_TRUE(Store::format(*medium, {StoreShape::kLeastChunkBytes, 2, 1}).ok());
    const auto again = test::RecordingMedium::restart(medium->crash_none());
    EXPECT_TRUE(facts_of(*Store::open(*again).value()).empty());
}

}  // namespace
}  // namespace cairn::fs
