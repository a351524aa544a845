// fs/medium: the behaviour of each medium that every machine has.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "fs/medium/backends.hpp"
#include "fs/medium/backing_file.hpp"
#include "tests/unit/fs_medium/media.hpp"

namespace cairn::fs {
namespace {

std::string name_of(const testing::TestParamInfo<Backend>& backend) {
    return backend.param.name;
}

INSTANTIATE_TEST_SUITE_P(Medium, OfAFile, testing::ValuesIn(kBackends), name_of);

// Expects zeros; this holds for every medium.
void expect_zeros(const Medium& medium) {
    EXPECT_EQ(medium.memory().size(), kTestBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(medium.memory().data()) % 4096, 0U);
    EXPECT_TRUE(std::ranges::all_of(medium.memory(), [](std::uint8_t byte) { return byte == 0; }));
}

// Returns how many pages of it are mapped, so that an access does not fault.
std::size_t mapped_pages(std::span<const std::uint8_t> memory) {
    constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
    std::vector<std::uint64_t> entries(memory.size() / 4096);
    const std::size_t wanted = entries.size() * sizeof entries[0];
    const std::size_t first = reinterpret_cast<std::uintptr_t>(memory.data()) / 4096;
    const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const ssize_t got = ::pread(file, entries.data(), wanted, static_cast<off_t>(first * sizeof entries[0]));
    ::close(file);
    EXPECT_EQ(got, static_cast<ssize_t>(wanted));
    return static_cast<std::size_t>(
        std::ranges::count_if(entries, [](std::uint64_t entry) { return (entry & kPresent) != 0; }));
}

void expect_copies_of_any_length(Medium& medium) {
    std::vector<std::uint8_t> source(5000);
    std::iota(source.begin(), source.end(), std::uint8_t{1});
    std::uint8_t* const memory = medium.memory().data();
    for (const std::size_t length : {0U, 1U, 7U, 8U, 63U, 64U, 65U, 255U, 256U, 300U, 4097U}) {
        for (const std::size_t begin : {4096U, 4099U, 4159U}) {
            std::memset(memory, 0xa5, 16384);
            medium.copy_nt(memory + begin, source.data() + begin % 8, length);
            medium.fence();
            EXPECT_EQ(std::memcmp(memory + begin, source.data() + begin % 8, length), 0);
            EXPECT_TRUE(std::all_of(memory, memory + begin, [](std::uint8_t byte) { return byte == 0xa5; }));
            EXPECT_TRUE(std::all_of(memory + begin + length, memory + 16384, [](auto byte) { return byte == 0xa5; }));
        }
    }
}

void expect_a_medium(Medium& medium) {
    EXPECT_EQ(mapped_pages(medium.memory()), kTestBytes / 4096);
    expect_zeros(medium);
    expect_copies_of_any_length(medium);
    std::memset(medium.memory().data(), 7, medium.memory().size());
    medium.flush(medium.memory().data() + 5, 0);
    medium.flush(medium.memory().data(), medium.memory().size());
    medium.fence();
    EXPECT_TRUE(medium.sync().ok());
    EXPECT_TRUE(std::ranges::all_of(medium.memory(), [](std::uint8_t byte) { return byte == 7; }));
}

TEST(MemoryMedium, IsAMediumAndSaysThatItIsLost) {
    Result<std::unique_ptr<Medium>> medium = make_memory(kTestBytes);
    ASSERT_TRUE(medium.ok());
    expect_a_medium(*medium.value());
    EXPECT_EQ(medium.value()->granularity(), Granularity::None);
    EXPECT_NE(medium.value()->describe().find("16 MiB"), std::string::npos);
    EXPECT_NE(medium.value()->describe().find("lost when this process ends"), std::string::npos);
}

TEST_P(OfAFile, IsAMediumAndSaysWhatItSurvives) {
    Result<std::unique_ptr<Medium>> medium = open(kTestBytes);
    ASSERT_TRUE(medium.ok()) << medium.error().text();
    expect_a_medium(*medium.value());
    const std::string text = medium.value()->describe();
    EXPECT_NE(text.find("16 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find(path_), std::string::npos) << text;
    EXPECT_EQ(text.find("FAKE") != std::string::npos, GetParam().fake_pmem) << text;
    EXPECT_EQ(text.find("NOT a loss of power") != std::string::npos, GetParam().fake_pmem) << text;
    EXPECT_EQ(medium.value()->granularity(), GetParam().fake_pmem ? Granularity::CacheLine : Granularity::Page);
}

TEST_P(OfAFile, KeepsItsContentAndLengthWhenItIsOpenedAgain) {
    for (const std::size_t bytes : {kTestBytes, std::size_t{0}, kTestBytes}) {
        Result<std::unique_ptr<Medium>> medium = open(bytes);
        ASSERT_TRUE(medium.ok()) << medium.error().text();
        ASSERT_EQ(medium.value()->memory().size(), kTestBytes);
        ++medium.value()->memory()[0];
        ++medium.value()->memory()[kTestBytes - 1];
    }
    Result<std::unique_ptr<Medium>> medium = open(0);
    ASSERT_TRUE(medium.ok());
    EXPECT_EQ(medium.value()->memory()[0], 3U);
    EXPECT_EQ(medium.value()->memory()[kTestBytes - 1], 3U);
}

TEST_P(OfAFile, SurvivesTheDeathOfItsProcessWhichGivesItFree) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        Result<std::unique_ptr<Medium>> medium = open(kTestBytes);
        if (medium.ok()) {
            std::strcpy(reinterpret_cast<char*>(medium.value()->memory().data()), "written");
            ::raise(SIGKILL);
        }
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    Result<std::unique_ptr<Medium>> medium = open(0);
    ASSERT_TRUE(medium.ok()) << medium.error().text();
    EXPECT_STREQ(reinterpret_cast<const char*>(medium.value()->memory().data()), "written");
}

TEST_P(OfAFile, FillsTheHolesOfAFileAndLeavesItsContent) {
    {
        Result<std::unique_ptr<Medium>> medium = open(kTestBytes);
        ASSERT_TRUE(medium.ok()) << medium.error().text();
        medium.value()->memory()[5] = 5;
    }
    ASSERT_EQ(::truncate(path_.c_str(), 4096), 0);
    ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(kTestBytes)), 0);
    Result<std::unique_ptr<Medium>> medium = open(0);
    ASSERT_TRUE(medium.ok()) << medium.error().text();
    struct stat facts {};
    ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
    EXPECT_GE(static_cast<std::size_t>(facts.st_blocks) * 512, kTestBytes);
    EXPECT_EQ(medium.value()->memory()[5], 5U);
}

TEST_P(OfAFile, IsForItsOwnerAlone) {
    ASSERT_TRUE(open(kTestBytes).ok());
    struct stat facts {};
    ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 077U, 0U);
}

TEST(TouchPages, MapsEachPageAndKeepsItsContent) {
    constexpr std::size_t kPages = 8;
    for (const Touch touch : {Touch::Read, Touch::Write}) {
        void* const mapped = ::mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        const std::span memory(static_cast<std::uint8_t*>(mapped), kPages * 4096);
        memory[4096] = 9;
        touch_pages(memory, touch);
        EXPECT_EQ(mapped_pages(memory), kPages);
        for (std::size_t at = 0; at < memory.size(); at += 4096) {
            EXPECT_EQ(memory[at], at == 4096 ? 9U : 0U);
        }
        ::munmap(mapped, memory.size());
    }
}

}  // namespace
}  // namespace cairn::fs
