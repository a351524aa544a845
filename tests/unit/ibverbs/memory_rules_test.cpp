// The memory that may be registered, changed, copied and advised.
#include "lib/ibverbs/memory_rules.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn::ibverbs {
namespace {

constexpr std::size_t kWhole = ~std::size_t{0};
constexpr unsigned kWritable = IBV_ACCESS_LOCAL_WRITE;

void* at(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

int reason_of(const Registration& wanted) {
    return judge_registration(wanted).reason;
}

TEST(MemoryRulesTest, MemoryThatWrapsIsRefused) {
    EXPECT_EQ(reason_of({at(8), kWhole - 8, 8, kWritable}), 0);
    EXPECT_EQ(reason_of({at(8), kWhole - 7, 8, kWritable}), EINVAL);
    EXPECT_EQ(reason_of({at(8), kWhole, 8, kWritable | IBV_ACCESS_ON_DEMAND}), EINVAL);
}

TEST(MemoryRulesTest, AllMemoryIsOnDemandAndNamedByItself) {
    EXPECT_EQ(reason_of({nullptr, kWhole, 0, kWritable | IBV_ACCESS_ON_DEMAND}), 0);
    const RegistrationJudgement all = judge_registration({nullptr, kWhole, 0, kWritable | IBV_ACCESS_ON_DEMAND});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.memory.data()), all.base);
    EXPECT_EQ(all.base + all.memory.size(), kWhole);
    EXPECT_EQ(reason_of({nullptr, kWhole, 0, kWritable}), EINVAL);
    EXPECT_EQ(reason_of({nullptr, kWhole, 1, kWritable | IBV_ACCESS_ON_DEMAND}), EINVAL);
}

TEST(MemoryRulesTest, PagesAreLookedAtUnlessOnDemand) {
    EXPECT_TRUE(judge_registration({at(8), 8, 8, kWritable}).needs_pages);
    EXPECT_FALSE(judge_registration({at(8), 0, 8, kWritable}).needs_pages);
    EXPECT_FALSE(judge_registration({at(8), 8, 8, kWritable | IBV_ACCESS_ON_DEMAND}).needs_pages);
    EXPECT_TRUE(judge_registration({at(8), 8, 8, kWritable}).needs_to_write);
    EXPECT_FALSE(judge_registration({at(8), 8, 8, IBV_ACCESS_REMOTE_READ}).needs_to_write);
}

TEST(MemoryRulesTest, ZeroBasedBeginsAtZero) {
    EXPECT_EQ(judge_registration({at(8), 8, 8, kWritable}).base, 8U);
    EXPECT_EQ(judge_registration({at(8), 8, 8, kWritable | IBV_ACCESS_ZERO_BASED}).base, 0U);
}

TEST(MemoryRulesTest, ChangesThatMeanNothing) {
    constexpr auto kOrdinary = SharedRegion::Kind::Ordinary;
    EXPECT_TRUE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_TRANSLATION, false, at(8), 8, 0}));
    EXPECT_FALSE(is_change(SharedRegion::Kind::Null, {IBV_REREG_MR_CHANGE_TRANSLATION, false, at(8), 8, 0}));
    EXPECT_FALSE(is_change(SharedRegion::Kind::DeviceMemory, {IBV_REREG_MR_CHANGE_TRANSLATION, false, at(8), 8, 0}));
    EXPECT_FALSE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_TRANSLATION, false, at(8), 0, 0}));
    EXPECT_FALSE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_TRANSLATION, false, nullptr, 8, 0}));
    EXPECT_FALSE(is_change(kOrdinary, {IBV_REREG_MR_FLAGS_SUPPORTED + 1, true, at(8), 8, 0}));
    EXPECT_TRUE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_PD, true, nullptr, 0, 0}));
    EXPECT_FALSE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_PD, false, nullptr, 0, 0}));
    EXPECT_FALSE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_PD, true, nullptr, 0, kWritable}));
    EXPECT_TRUE(is_change(kOrdinary, {IBV_REREG_MR_CHANGE_ACCESS, false, nullptr, 0, kWritable}));
}

TEST(MemoryRulesTest, DeviceMemoryIsCopiedByWordsWithinIt) {
    EXPECT_EQ(judge_device_copy(0, 64, 64), 0);
    EXPECT_EQ(judge_device_copy(60, 4, 64), 0);
    EXPECT_EQ(judge_device_copy(60, 8, 64), EFAULT);
    EXPECT_EQ(judge_device_copy(~std::uint64_t{3}, 8, 64), EFAULT);
    EXPECT_EQ(judge_device_copy(0, 68, 64), EFAULT);
    EXPECT_EQ(judge_device_copy(2, 4, 64), EINVAL);
    EXPECT_EQ(judge_device_copy(0, 3, 64), EINVAL);
}

TEST(MemoryRulesTest, RegionsOfDeviceMemoryAreZeroBased) {
    constexpr unsigned kZeroBased = kWritable | IBV_ACCESS_ZERO_BASED;
    EXPECT_EQ(judge_device_registration(0, 64, 64, kZeroBased), 0);
    EXPECT_EQ(judge_device_registration(1, 63, 64, kZeroBased | IBV_ACCESS_RELAXED_ORDERING), 0);
    EXPECT_EQ(judge_device_registration(1, 64, 64, kZeroBased), EINVAL);
    EXPECT_EQ(judge_device_registration(0, 64, 64, kWritable), EINVAL);
    EXPECT_EQ(judge_device_registration(0, 64, 64, kZeroBased | IBV_ACCESS_MW_BIND), EINVAL);
}

TEST(MemoryRulesTest, DeviceMemoryIsScarce) {
    EXPECT_EQ(judge_device_memory({kMostDeviceMemory, 0, 0}, 0), 0);
    EXPECT_EQ(judge_device_memory({kMostDeviceMemory + 1, 0, 0}, 0), EINVAL);
    EXPECT_EQ(judge_device_memory({0, 0, 0}, 0), EINVAL);
    EXPECT_EQ(judge_device_memory({8, 30, 0}, 0), EINVAL);
    EXPECT_EQ(judge_device_memory({8, 0, 1}, 0), EINVAL);
    EXPECT_EQ(judge_device_memory({8, 0, 0}, kMostDeviceMemory - 8), 0);
    EXPECT_EQ(judge_device_memory({8, 0, 0}, kMostDeviceMemory - 7), ENOMEM);
}

TEST(MemoryRulesTest, AdviceSaysWhatIsWrong) {
    EXPECT_EQ(errno_of_advice(roce::MemoryRefusal::UnknownKey), ENOENT);
    EXPECT_EQ(errno_of_advice(roce::MemoryRefusal::WrongPd), EPERM);
    EXPECT_EQ(errno_of_advice(roce::MemoryRefusal::NoRight), EPERM);
    EXPECT_EQ(errno_of_advice(roce::MemoryRefusal::OutOfRange), EFAULT);
}

}  // namespace
}  // namespace cairn::ibverbs
