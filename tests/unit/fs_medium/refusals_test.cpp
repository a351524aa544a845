// fs/medium: refusals, with the path and the remedy, and the files that they leave behind.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "fs/medium/backends.hpp"
#include "fs/medium/path_kind.hpp"
#include "fs/medium/pmem_verdict.hpp"
#include "tests/unit/fs_medium/media.hpp"

namespace cairn::fs {
namespace {

// Another fixture, so that its tests belong to this source.
class Refusals : public OfAFile {};

std::string case_of(const testing::TestParamInfo<Backend>& backend) {
    return backend.param.name;
}

INSTANTIATE_TEST_SUITE_P(Medium, Refusals, testing::ValuesIn(kBackends), case_of);

void expect_within(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST_P(Refusals, ASecondMediumOfThePathIsRefusedAsLongAsTheFirstLives) {
    Result<std::unique_ptr<Medium>> first = open(kTestBytes);
    ASSERT_TRUE(first.ok()) << first.error().text();
    for (const std::size_t bytes : {std::size_t{0}, kTestBytes}) {
        const std::string text = refusal(bytes);
        expect_within(text, path_);
        expect_within(text, "in use by another daemon");
    }
    first.value().reset();
    EXPECT_TRUE(open(0).ok());
}

TEST_P(Refusals, LengthsThatAreTooSmallTooLargeOrNoMultipleMakeNoFile) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{14} << 20U, (std::size_t{17} << 20U), kTestBytes + 4096,
                                    std::size_t{1} << 60U, ~std::size_t{0}}) {
        const std::string text = refusal(bytes);
        expect_within(text, path_);
        expect_within(text, "multiple of 2 MiB, from 16 MiB to 64 TiB");
        EXPECT_FALSE(std::filesystem::exists(path_));
    }
}

TEST_P(Refusals, AFileOfAnotherLengthStaysAsItIs) {
    ASSERT_TRUE(open(kTestBytes).ok());
    for (const std::size_t bytes : {kTestBytes + (2U << 20U), 2 * kTestBytes}) {
        const std::string text = refusal(bytes);
        expect_within(text, path_);
        expect_within(text, "has 16 MiB, not");
        EXPECT_EQ(std::filesystem::file_size(path_), kTestBytes);
    }
    std::filesystem::resize_file(path_, 2 * kTestBytes);
    expect_within(refusal(kTestBytes), "has 32 MiB, not 16 MiB");
    EXPECT_EQ(std::filesystem::file_size(path_), 2 * kTestBytes);
}

TEST_P(Refusals, AFileWhoseOwnLengthIsBadIsLeftAlone) {
    std::ofstream(path_) << "text";
    const std::string text = refusal(0);
    expect_within(text, path_);
    expect_within(text, "4 bytes");
    EXPECT_EQ(std::filesystem::file_size(path_), 4U);
}

TEST_P(Refusals, AnAbsentFileNeedsALengthAndAnEmptyOneToo) {
    expect_within(refusal(0), "give a length to make it");
    EXPECT_FALSE(std::filesystem::exists(path_));
    std::ofstream(path_).close();
    expect_within(refusal(0), "0 MiB");
    EXPECT_TRUE(open(kTestBytes).ok());
}

TEST_P(Refusals, AMissingFolderIsNamed) {
    const std::string folder = folder_->file("nowhere/deep");
    const Result<std::unique_ptr<Medium>> opened = GetParam().open(folder + "/region", kTestBytes);
    ASSERT_FALSE(opened.ok());
    expect_within(opened.error().what, folder + "/region");
    expect_within(opened.error().remedy, "make the folder '" + folder + "'");
}

TEST_P(Refusals, WhatIsNoFileIsNamed) {
    std::filesystem::create_directory(path_);
    expect_within(refusal(0), path_);
    expect_within(refusal(kTestBytes), path_);
    path_ = folder_->file("pipe");
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    expect_within(refusal(kTestBytes), "'" + path_ + "' is no ordinary file");
    for (const char* const device : {"/dev/zero", "/dev/null"}) {
        path_ = device;
        expect_within(refusal(0), "'" + path_ + "' is a device, and no DAX device");
        expect_within(refusal(kTestBytes), "'daxctl list'");
    }
}

// It would be a file in memory with the name of a missing device.
TEST_P(Refusals, NoFileIsMadeAmongDevices) {
    for (const char* const folder : {"/dev", "/dev/../dev"}) {
        path_ = std::string(folder) + "/cairn_no_such_dax" + std::to_string(::getpid());
        const std::string text = refusal(kTestBytes);
        EXPECT_FALSE(std::filesystem::remove(path_));
        expect_within(text, "cannot open '" + path_ + "': No such file or directory");
        expect_within(text, "name a device that is there");
    }
}

TEST_P(Refusals, MoreThanTheDiskHasIsRefusedAndRemoved) {
    expect_within(refusal(std::size_t{60} << 40U), "No space left on device");
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_P(Refusals, AFileThatCannotBeMadeWholeIsRemovedAndOneThatWasThereIsNot) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit less{std::size_t{1} << 20U, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
    const std::string made = refusal(kTestBytes);
    EXPECT_FALSE(std::filesystem::exists(path_));
    std::ofstream(path_).close();
    const std::string there = refusal(kTestBytes);
    EXPECT_TRUE(std::filesystem::exists(path_));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_DFL);
    expect_within(made, "cannot take 16 MiB for '" + path_ + "'");
    expect_within(there, "cannot take 16 MiB for '" + path_ + "'");
}

TEST(PathKind, WhatNoMediumTakesIsRefusedWithTheWayToUseIt) {
    const auto said = [](PathKind kind, Devices devices) {
        const Status judged = judge_kind("here", kind, devices);
        return judged.ok() ? "taken" : judged.error().text();
    };
    for (const Devices devices : {Devices::Taken, Devices::Refused}) {
        EXPECT_EQ(said(PathKind::File, devices), "taken");
        expect_within(said(PathKind::Disk, devices), "'here' is a disk; name a file");
        expect_within(said(PathKind::OtherDevice, devices), "no DAX device; name a DAX");
        expect_within(said(PathKind::Other, devices), "no ordinary file");
    }
    EXPECT_EQ(said(PathKind::DaxDevice, Devices::Taken), "taken");
    expect_within(said(PathKind::DaxDevice, Devices::Refused), "as persistent memory");
}

TEST(MemoryMedium, RefusesTheLengthsThatFilesAreRefused) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}, kTestBytes + 1}) {
        const Result<std::unique_ptr<Medium>> made = make_memory(bytes);
        ASSERT_FALSE(made.ok());
        expect_within(made.error().text(), "multiple of 2 MiB");
    }
}

TEST(Pmem, AnOrdinaryFileIsRefusedUnlessFakesAreAllowed) {
    const Folder folder(testing::TempDir());
    const std::string path = folder.file("region");
    const Result<std::unique_ptr<Medium>> made = open_pmem(path, kTestBytes);
    ASSERT_FALSE(made.ok());
    expect_within(made.error().what, "'" + path + "' is no persistent memory");
    expect_within(made.error().remedy, "--allow-fake-pmem");
    EXPECT_FALSE(std::filesystem::exists(path));

    ASSERT_TRUE(open_file(path, kTestBytes).ok());
    EXPECT_FALSE(open_pmem(path, 0).ok());
    EXPECT_EQ(std::filesystem::file_size(path), kTestBytes);
}

TEST(Pmem, VariablesThatMisleadLibpmemAreRefused) {
    const Folder folder(testing::TempDir());
    const std::string path = folder.file("region");
    for (const char* const name : {"PMEM_IS_PMEM_FORCE", "PMEM_NO_FLUSH"}) {
        for (const bool allow_fake : {false, true}) {
            ::setenv(name, "1", 1);
            const Result<std::unique_ptr<Medium>> opened = open_pmem(path, kTestBytes, {allow_fake});
            ::unsetenv(name);
            ASSERT_FALSE(opened.ok());
            expect_within(opened.error().what, path);
            expect_within(opened.error().remedy, std::string("unset ") + name);
        }
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Pmem, OnlyWhatLibpmemKnowsIsTakenForReal) {
    for (const bool auto_flush : {false, true}) {
        EXPECT_EQ(judge_pmem({false, auto_flush}, {false}), PmemVerdict::Refused);
        EXPECT_EQ(judge_pmem({false, auto_flush}, {true}), PmemVerdict::Fake);
    }
    for (const bool allow_fake : {false, true}) {
        EXPECT_EQ(judge_pmem({true, false}, {allow_fake}), PmemVerdict::CacheLine);
        EXPECT_EQ(judge_pmem({true, true}, {allow_fake}), PmemVerdict::Byte);
    }
}

}  // namespace
}  // namespace cairn::fs
