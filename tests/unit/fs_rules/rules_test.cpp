// Permissions, names and ranges, case by case.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <limits>
#include <string>

#include "fs/rules/access.hpp"
#include "fs/rules/names.hpp"
#include "fs/rules/ranges.hpp"

namespace cairn::fs {
namespace {

constexpr std::array<std::uint32_t, 2> kGroups{20, 30};
constexpr Credentials kRoot{0, 0, {}};
constexpr Credentials kOwner{7, 10, {}};
constexpr Credentials kMember{8, 10, {}};
constexpr Credentials kOther{9, 11, kGroups};

constexpr Owned file(std::uint32_t mode) {
    return {S_IFREG | mode, 7, 10};
}
constexpr Owned directory(std::uint32_t mode) {
    return {S_IFDIR | mode, 7, 10};
}

TEST(Access, IsThatOfTheCallersClassAlone) {
    EXPECT_EQ(judge_access(file(0640), kOwner, kMayRead | kMayWrite), 0);
    EXPECT_EQ(judge_access(file(0640), kOwner, kMayExecute), EACCES);
    EXPECT_EQ(judge_access(file(0640), kMember, kMayRead), 0);
    EXPECT_EQ(judge_access(file(0640), kMember, kMayWrite), EACCES);
    EXPECT_EQ(judge_access(file(0640), kOther, kMayRead), EACCES);
    EXPECT_EQ(judge_access(file(0604), kOther, kMayRead), 0);
    EXPECT_EQ(judge_access(file(0047), kOwner, kMayRead), EACCES) << "the owner is none of the others";
    EXPECT_EQ(judge_access(file(0607), kMember, kMayRead), EACCES);
    EXPECT_EQ(judge_access({S_IFREG | 0060, 1, 30}, kOther, kMayRead | kMayWrite), 0) << "one of its further groups";
    EXPECT_EQ(judge_access(file(0), kOther, 0), 0);
}

TEST(Access, OfTheSuperuserHasOneLimit) {
    EXPECT_EQ(judge_access(file(0), kRoot, kMayRead | kMayWrite), 0);
    EXPECT_EQ(judge_access(file(0), kRoot, kMayExecute), EACCES);
    EXPECT_EQ(judge_access(file(0001), kRoot, kMayExecute), 0);
    EXPECT_EQ(judge_access(directory(0), kRoot, kMayExecute), 0);
}

TEST(Access, ToNamesOfAStickyDirectoryIsTheirOwners) {
    const Owned shared{S_IFDIR | S_ISVTX | 0777, 1, 1};
    EXPECT_EQ(judge_removal(shared, file(0), kOwner), 0);
    EXPECT_EQ(judge_removal(shared, file(0777), kOther), EPERM);
    EXPECT_EQ(judge_removal(shared, file(0777), {1, 5, {}}), 0) << "the directory's owner";
    EXPECT_EQ(judge_removal(shared, file(0777), kRoot), 0);
    EXPECT_EQ(judge_removal(directory(0777), {S_IFREG, 1, 1}, kOther), 0);
    EXPECT_EQ(judge_removal(directory(0775), file(0777), kOther), EACCES);
    EXPECT_EQ(judge_removal(directory(0200), file(0), kOwner), EACCES) << "it cannot look the name up";
}

TEST(Access, ModesAreChangedByOwners) {
    EXPECT_EQ(judge_owner(file(0), kOwner), 0);
    EXPECT_EQ(judge_owner(file(0777), kMember), EPERM);
    EXPECT_EQ(judge_owner(file(0), kRoot), 0);
    EXPECT_EQ(mode_after_chmod(file(0644), kOwner, 06755), S_IFREG | 06755U);
    EXPECT_EQ(mode_after_chmod(file(0644), kOwner, 0177777), S_IFREG | 07777U) << "its type stays";
    const Owned of_another_group{S_IFREG | 0644, 7, 99};
    EXPECT_EQ(mode_after_chmod(of_another_group, kOwner, 02755), S_IFREG | 0755U);
    EXPECT_EQ(mode_after_chmod(of_another_group, kRoot, 02755), S_IFREG | 02755U);
}

TEST(Access, FilesAreGivenToGroupsOfTheirOwners) {
    EXPECT_EQ(judge_chown(file(0), kRoot, 1, 1), 0);
    EXPECT_EQ(judge_chown(file(0), kOwner, 7, 10), 0);
    EXPECT_EQ(judge_chown(file(0), kOwner, 8, 10), EPERM);
    EXPECT_EQ(judge_chown(file(0), kOwner, 7, 30), EPERM);
    EXPECT_EQ(judge_chown(file(0), {7, 10, kGroups}, 7, 30), 0);
    EXPECT_EQ(judge_chown(file(0), kMember, 7, 10), EPERM);
    EXPECT_EQ(mode_without_ids(S_IFREG | 06755U), S_IFREG | 0755U);
    EXPECT_EQ(mode_without_ids(S_IFREG | 06745U), S_IFREG | 02745U);
    EXPECT_EQ(mode_without_ids(S_IFDIR | 06755U), S_IFDIR | 06755U);
}

TEST(Access, OfNewFilesIsTheirMakers) {
    const Owned made = made_in(directory(0755), kOther, S_IFREG | 0640U);
    EXPECT_EQ(made.uid, 9U);
    EXPECT_EQ(made.gid, 11U);
    EXPECT_EQ(made.mode, S_IFREG | 0640U);
    const Owned in_group = made_in(directory(02755), kOther, S_IFDIR | 0750U);
    EXPECT_EQ(in_group.gid, 10U);
    EXPECT_EQ(in_group.mode, S_IFDIR | 02750U);
    EXPECT_EQ(made_in(directory(02755), kOther, S_IFREG | 02750U).mode, S_IFREG | 0750U) << "it is not of that group";
    EXPECT_EQ(made_in(directory(02755), kMember, S_IFREG | 02750U).mode, S_IFREG | 02750U);
}

TEST(Names, AreAnyBytesButTwo) {
    EXPECT_EQ(judge_name("-1"), 0);
    EXPECT_EQ(judge_name("\xff\xfe not UTF-8"), 0);
    EXPECT_EQ(judge_name("..."), 0);
    EXPECT_EQ(judge_name(std::string(255, 'x')), 0);
    EXPECT_EQ(judge_name(std::string(256, 'x')), ENAMETOOLONG);
    EXPECT_EQ(judge_name(""), ENOENT);
    for (const std::string_view name : {std::string_view("."), std::string_view(".."), std::string_view("a/b"),
                                        std::string_view("/"), std::string_view("a\0b", 3)}) {
        EXPECT_EQ(judge_name(name), EINVAL) << name;
    }
}

TEST(Ranges, EndWhereFilesDo) {
    constexpr std::uint32_t kMiB = 1U << 20U;
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(longest_file(kMiB), std::uint64_t{1} << 52U);
    EXPECT_EQ(judge_range(-1, 1, kMiB, false), EINVAL);
    EXPECT_EQ(judge_range(std::numeric_limits<std::int64_t>::min(), 0, kMiB, true), EINVAL);
    EXPECT_EQ(judge_range(kMost, 1, kMiB, true), EFBIG);
    EXPECT_EQ(judge_range(kMost, 0, kMiB, true), 0);
    EXPECT_EQ(judge_range(kMost, ~std::uint64_t{0}, kMiB, false), 0) << "nothing is read there";
    EXPECT_EQ(judge_range(0, ~std::uint64_t{0}, kMiB, true), 0);
    const auto end = static_cast<std::int64_t>(longest_file(kMiB));
    EXPECT_EQ(judge_range(end - 1, 100, kMiB, true), 0);
    EXPECT_EQ(bytes_that_fit(end - 1, 100, kMiB), 1U);
    EXPECT_EQ(bytes_that_fit(0, 100, kMiB), 100U);
    EXPECT_EQ(bytes_that_fit(kMost, ~std::uint64_t{0}, kMiB), 0U);
    EXPECT_EQ(bytes_that_fit(0, ~std::uint64_t{0}, kMiB), longest_file(kMiB));
}

}  // namespace
}  // namespace cairn::fs
