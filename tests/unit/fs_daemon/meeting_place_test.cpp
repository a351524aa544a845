// The path where clients find a daemon: one daemon at a time owns it, whatever the last one left there.
#include "fs/daemon/meeting_place.hpp"

#include <sys/stat.h>

#include <fstream>

#include "fs/daemon/key_file.hpp"
#include "tests/unit/fs_daemon/guest.hpp"

namespace cairn::fs {
namespace {

using test::Folder;
using test::Guest;

struct stat facts_of(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::stat(path.c_str(), &facts), 0);
    return facts;
}

TEST(MeetingPlaceTest, ASecondDaemonIsToldWhoHasIt) {
    const Folder folder;
    const auto first = MeetingPlace::open(folder / "fs", 0600);
    ASSERT_TRUE(first.ok()) << first.error().text();
    const auto second = MeetingPlace::open(folder / "fs", 0600);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().what.find(std::to_string(::getpid())), std::string::npos) << second.error().text();
    EXPECT_NE(second.error().what.find(folder / "fs.lock"), std::string::npos) << second.error().text();
    EXPECT_TRUE(Guest(folder / "fs.sock").is_connected());  // the first one still works
}

TEST(MeetingPlaceTest, TheSocketHasItsModeAndGoesWithTheDaemon) {
    const Folder folder;
    {
        const auto place = MeetingPlace::open(folder / "fs", 0640);
        ASSERT_TRUE(place.ok());
        EXPECT_EQ(facts_of(folder / "fs.sock").st_mode & 0777U, 0640U);
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "fs.sock"));
    EXPECT_TRUE(MeetingPlace::open(folder / "fs", 0600).ok());
}

TEST(MeetingPlaceTest, ASocketThatADeadDaemonLeftIsReplaced) {
    const Folder folder;
    {
        const OwnedFd dead(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = folder / "fs.sock";
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    ASSERT_FALSE(Guest(folder / "fs.sock").is_connected());
    const auto place = MeetingPlace::open(folder / "fs", 0600);
    ASSERT_TRUE(place.ok()) << place.error().text();
    EXPECT_TRUE(Guest(folder / "fs.sock").is_connected());
}

TEST(MeetingPlaceTest, WhatIsNoSocketStays) {
    const Folder folder;
    std::ofstream(folder / "fs.sock") << "precious";
    EXPECT_FALSE(MeetingPlace::open(folder / "fs", 0600).ok());
    EXPECT_EQ(std::filesystem::file_size(folder / "fs.sock"), 8U);
}

TEST(MeetingPlaceTest, PlacesThatNoSocketCanHaveAreRefused) {
    const Folder folder;
    EXPECT_FALSE(MeetingPlace::open(folder / "absent/fs", 0600).ok());
    const auto too_long = MeetingPlace::open(folder / std::string(100, 'x'), 0600);
    ASSERT_FALSE(too_long.ok());
    EXPECT_NE(too_long.error().text().find("too long"), std::string::npos);
}

void write_key(const std::string& path, const std::string& key, mode_t mode) {
    std::ofstream(path) << key;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

TEST(KeyFileTest, EqualBytesAreOneKeyAndAllOfThemCount) {
    const Folder folder;
    write_key(folder / "one", "0123456789abcdef01", 0600);
    write_key(folder / "same", "0123456789abcdef01", 0400);
    write_key(folder / "other", "0123456789abcdef02", 0600);
    write_key(folder / "longer", std::string("0123456789abcdef01\0", 19), 0600);
    const SipKey one = read_key_file(folder / "one").value();
    EXPECT_EQ(read_key_file(folder / "same").value(), one);
    EXPECT_NE(read_key_file(folder / "other").value(), one);
    EXPECT_NE(read_key_file(folder / "longer").value(), one);
}

TEST(KeyFileTest, WhatIsNoSecretIsRefused) {
    const Folder folder;
    write_key(folder / "short", "0123456789abcde", 0600);
    write_key(folder / "open", "0123456789abcdef", 0640);
    for (const char* name : {"short", "open", "absent"}) {
        const auto key = read_key_file(folder / name);
        ASSERT_FALSE(key.ok()) << name;
        EXPECT_NE(key.error().what.find(folder / name), std::string::npos) << key.error().text();
        EXPECT_FALSE(key.error().remedy.empty());
    }
}

}  // namespace
}  // namespace cairn::fs
