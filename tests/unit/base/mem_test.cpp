// lib/mem: slab, arena, regions.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "lib/mem/arena.hpp"
#include "lib/mem/region.hpp"
#include "lib/mem/slab.hpp"

namespace cairn::mem {
namespace {

TEST(Slab, GivesEachObjectAHandleThatFindsIt) {
    Slab<std::string> slab(3);
    const auto first = slab.try_emplace("one");
    const auto second = slab.try_emplace(3U, 'x');
    ASSERT_TRUE(first.valid());
    ASSERT_NE(slab.find(first), nullptr);
    EXPECT_EQ(*slab.find(first), "one");
    EXPECT_EQ(*slab.find(second), "xxx");
    EXPECT_EQ(slab.size(), 2U);
}

TEST(Slab, SaysFullByAnInvalidHandleAndGoesOnAfterAnErase) {
    Slab<int> slab(2);
    const auto first = slab.try_emplace(1);
    const auto second = slab.try_emplace(2);
    EXPECT_TRUE(slab.full());
    EXPECT_FALSE(slab.try_emplace(3).valid());
    EXPECT_EQ(*slab.find(first), 1);
    EXPECT_TRUE(slab.erase(first));
    const auto third = slab.try_emplace(3);
    ASSERT_TRUE(third.valid());
    EXPECT_EQ(*slab.find(third), 3);
    EXPECT_EQ(*slab.find(second), 2);
}

TEST(Slab, RecognisesAHandleWhoseSlotWasUsedAgain) {
    Slab<int> slab(1);
    const auto old = slab.try_emplace(1);
    slab.erase(old);
    EXPECT_EQ(slab.find(old), nullptr);
    const auto young = slab.try_emplace(2);
    EXPECT_EQ(young.index, old.index);
    EXPECT_EQ(slab.find(old), nullptr);
    EXPECT_FALSE(slab.erase(old));
    EXPECT_EQ(*slab.find(young), 2);
    EXPECT_EQ(slab.size(), 1U);
}

TEST(Slab, RefusesHandlesItNeverGave) {
    Slab<int> slab(2);
    const auto given = slab.try_emplace(1);
    EXPECT_EQ(slab.find({}), nullptr);
    EXPECT_EQ(slab.find({1, 0}), nullptr);                 // a slot never used
    EXPECT_EQ(slab.find({2, given.generation}), nullptr);  // beyond the end
    EXPECT_EQ(slab.find({given.index, given.generation + 1}), nullptr);
    EXPECT_FALSE(slab.erase({7, 1}));
}

TEST(Slab, DestroysEachObjectOnceAndTheRestAtItsEnd) {
    const auto witness = std::make_shared<int>(0);
    {
        Slab<std::shared_ptr<int>> slab(4);
        const auto first = slab.try_emplace(witness);
        (void)slab.try_emplace(witness);
        (void)slab.try_emplace(witness);
        EXPECT_EQ(witness.use_count(), 4);
        slab.erase(first);
        slab.erase(first);
        EXPECT_EQ(witness.use_count(), 3);
    }
    EXPECT_EQ(witness.use_count(), 1);
}

TEST(Slab, VisitsLiveObjectsAndLetsThemBeErased) {
    Slab<int> slab(5);
    std::vector<Handle<int>> handles;
    handles.reserve(5);
    for (int i = 0; i < 5; ++i) {
        handles.push_back(slab.try_emplace(i));
    }
    slab.erase(handles[1]);
    std::vector<int> seen;
    slab.for_each([&](Handle<int> handle, int& value) {
        seen.push_back(value);
        slab.erase(handle);
    });
    EXPECT_EQ(seen, (std::vector<int>{0, 2, 3, 4}));
    EXPECT_EQ(slab.size(), 0U);
}

TEST(Slab, HoldsObjectsOfLargeAlignment) {
    struct alignas(128) Wide {
        std::uint8_t byte = 0;
    };
    Slab<Wide> slab(3);
    for (int i = 0; i < 3; ++i) {
        const auto handle = slab.try_emplace();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.find(handle)) % 128, 0U);
    }
}

TEST(Slab, WithoutRoomIsAlwaysFull) {
    Slab<int> slab(0);
    EXPECT_TRUE(slab.full());
    EXPECT_FALSE(slab.try_emplace(1).valid());
}

TEST(Arena, GivesAlignedPiecesThatDoNotOverlap) {
    alignas(64) std::uint8_t memory[1024];
    Arena arena(memory);
    const auto first = arena.try_allocate(10);
    const auto second = arena.try_allocate(100);
    const auto third = arena.try_allocate(4, 4);
    ASSERT_EQ(first.size(), 10U);
    ASSERT_EQ(second.size(), 100U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 64, 0U);
    EXPECT_EQ(second.data() - first.data(), 64);
    EXPECT_EQ(third.data() - second.data(), 100);
    EXPECT_EQ(arena.used(), 168U);
    EXPECT_EQ(arena.left(), 1024U - 168U);
}

TEST(Arena, AlignsWhenItsMemoryDoesNot) {
    alignas(64) std::uint8_t memory[256];
    Arena arena(std::span<std::uint8_t>(memory).subspan(3));
    const auto piece = arena.try_allocate(64);
    EXPECT_EQ(piece.data(), memory + 64);
    EXPECT_EQ(arena.left(), 128U);
}

TEST(Arena, GivesTheLastByteAndNoneBeyond) {
    alignas(64) std::uint8_t memory[128];
    Arena arena(memory);
    EXPECT_EQ(arena.try_allocate(65).size(), 65U);
    EXPECT_TRUE(arena.try_allocate(1).empty());  // 63 bytes are left, none of them aligned
    EXPECT_EQ(arena.try_allocate(63, 1).size(), 63U);
    EXPECT_TRUE(arena.try_allocate(1, 1).empty());
    EXPECT_TRUE(arena.try_allocate(~std::size_t{0}, 1).empty());
    arena.reset();
    EXPECT_EQ(arena.try_allocate(128).size(), 128U);
}

TEST(Region, IsZeroedWritableAndLargeEnough) {
    for (const std::size_t wanted : {std::size_t{1}, std::size_t{4097}, (std::size_t{2} << 20U) + 1}) {
        for (const PageWish wish : {PageWish::Best, PageWish::NoHuge}) {
            const auto region = Region::map(wanted, wish);
            ASSERT_TRUE(region.ok()) << region.error().text();
            const auto bytes = region.value().bytes();
            ASSERT_GE(bytes.size(), wanted);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096, 0U);
            EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; }));
            std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
            EXPECT_EQ(bytes.back(), static_cast<std::uint8_t>(bytes.size()));
        }
    }
}

TEST(Region, OnLargePagesIsAlignedToThem) {
    const auto region = Region::map(std::size_t{5} << 20U);
    ASSERT_TRUE(region.ok());
    if (region.value().kind() != PageKind::Plain) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.value().bytes().data()) % (2U << 20U), 0U);
        EXPECT_EQ(region.value().bytes().size(), std::size_t{6} << 20U);
    }
    EXPECT_NE(region.value().describe().find("MiB on "), std::string::npos);
}

TEST(Region, SaysWhichPagesItStandsOn) {
    const auto small = Region::map(100, PageWish::NoHuge);
    ASSERT_TRUE(small.ok());
    EXPECT_EQ(small.value().kind(), PageKind::Plain);  // less than one large page
    EXPECT_EQ(small.value().describe(), "4 KiB on plain pages (no huge ones to be had)");
}

TEST(Region, CountsOnNoTransparentPagesOfAProcessThatMayHaveNone) {
    constexpr std::size_t kBytes = std::size_t{4} << 20U;
    const auto kind = [] { return Region::map(kBytes, PageWish::NoHuge).value().kind(); };
    const PageKind usual = kind();
    ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    EXPECT_EQ(kind(), PageKind::Plain);
    ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
    EXPECT_EQ(kind(), usual);
}

TEST(Region, NamesEachKindOfPages) {
    EXPECT_EQ(name_of(PageKind::Huge), "huge");
    EXPECT_EQ(name_of(PageKind::Transparent), "transparent");
    EXPECT_EQ(name_of(PageKind::Plain), "small");
}

TEST(Region, GivesReservedHugePagesOrSaysHowToReserveThem) {
    const auto region = Region::map(1, PageWish::HugeOnly);
    if (region.ok()) {
        EXPECT_EQ(region.value().kind(), PageKind::Huge);
        EXPECT_EQ(region.value().bytes().size() % (std::size_t{2} << 20U), 0U);
    } else {
        EXPECT_NE(region.error().text().find("huge pages"), std::string::npos);
        EXPECT_NE(region.error().text().find("vm.nr_hugepages"), std::string::npos);
    }
}

TEST(Region, RefusesSizesThatCannotBe) {
    EXPECT_FALSE(Region::map(0).ok());
    EXPECT_FALSE(Region::map(~std::size_t{0}).ok());
    EXPECT_FALSE(Region::map(~std::size_t{0} - (std::size_t{2} << 20U)).ok());
}

TEST(Region, SaysWhatToDoAboutASizeThatTheKernelRefuses) {
    const auto region = Region::map(std::size_t{1} << 46U, PageWish::NoHuge, true);
    ASSERT_FALSE(region.ok());
    EXPECT_NE(region.error().what.find("70368744177664"), std::string::npos) << region.error().text();
    EXPECT_NE(region.error().remedy.find("ask for less"), std::string::npos) << region.error().text();
    EXPECT_NE(Region::map(~std::size_t{0}).error().remedy.find("64 TiB"), std::string::npos);
}

TEST(Region, IsUnmappedAtItsEnd) {
    // No byte of the former region is mapped: msync() of it fails (ENOMEM).
    const auto is_mapped = [](std::span<std::uint8_t> bytes) { return ::msync(bytes.data(), bytes.size(), 0) == 0; };
    for (const std::size_t wanted : {std::size_t{5000}, (std::size_t{2} << 20U) + 1}) {
        std::span<std::uint8_t> bytes;
        {
            const Region region = Region::map(wanted, PageWish::NoHuge).value();
            bytes = region.bytes();
            ASSERT_TRUE(is_mapped(bytes));
        }
        EXPECT_FALSE(is_mapped(bytes.first(4096)));
        EXPECT_FALSE(is_mapped(bytes.last(4096)));
    }
}

TEST(Region, PopulatesOnRequest) {
    const auto region = Region::map(std::size_t{1} << 20U, PageWish::NoHuge, true);
    ASSERT_TRUE(region.ok()) << region.error().text();
    EXPECT_EQ(region.value().bytes()[12345], 0);
}

TEST(Region, MovesWithoutMovingItsMemory) {
    auto first = Region::map(8192).value();
    std::uint8_t* const data = first.bytes().data();
    data[0] = 42;
    Region second = std::move(first);
    EXPECT_EQ(second.bytes().data(), data);
    Region third = Region::map(4096).value();
    third = std::move(second);
    EXPECT_EQ(third.bytes().data(), data);
    EXPECT_EQ(third.bytes()[0], 42);
}

TEST(TransparentPages, AreOfferedAsTheKernelSays) {
    EXPECT_TRUE(offers_transparent_pages("[always] madvise never\n"));
    EXPECT_TRUE(offers_transparent_pages("always [madvise] never\n"));
    EXPECT_FALSE(offers_transparent_pages("always madvise [never]\n"));
    EXPECT_FALSE(offers_transparent_pages(""));
}

}  // namespace
}  // namespace cairn::mem
