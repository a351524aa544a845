// CAIRN_DEVICES, and the devices of a machine without it.
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lib/ibverbs/device_config.hpp"

namespace cairn::ibverbs {
namespace {

TEST(DeviceConfigTest, AListGivesEachDeviceItsAddress) {
    const auto devices = parse_devices("cairn0=10.0.0.1,left-1=2001:db8::1").value();
    ASSERT_EQ(devices.size(), 2U);
    EXPECT_EQ(devices[0].name, "cairn0");
    EXPECT_EQ(devices[0].address.text(), "10.0.0.1");
    EXPECT_EQ(devices[1].name, "left-1");
    EXPECT_EQ(devices[1].address.text(), "2001:db8::1");
}

TEST(DeviceConfigTest, AnEmptyListHasNoDevices) {
    EXPECT_TRUE(parse_devices("").value().empty());
}

TEST(DeviceConfigTest, AWrongEntryIsNamed) {
    const std::string long_name(32, 'x');
    for (const std::string& wrong :
         {std::string("cairn0"), std::string("=10.0.0.1"), std::string("a b=10.0.0.1"), std::string("cairn0=host"),
          std::string("cairn0="), long_name + "=10.0.0.1", std::string("cairn0=10.0.0")}) {
        const auto refused = parse_devices("ok=10.0.0.9," + wrong);
        ASSERT_FALSE(refused.ok()) << wrong;
        EXPECT_NE(refused.error().text().find("'" + wrong + "'"), std::string::npos) << refused.error().text();
        EXPECT_NE(refused.error().text().find("CAIRN_DEVICES"), std::string::npos);
    }
    EXPECT_FALSE(parse_devices(",").ok());
    EXPECT_TRUE(parse_devices(std::string(31, 'x') + "=10.0.0.1").ok());
}

TEST(DeviceConfigTest, AnAddressThatIsWantedIsAddedUnderAFreeName) {
    const net::IpAddress wanted = net::IpAddress::from_v4(0x7f000009);
    EXPECT_EQ(text_with({}, wanted), "CAIRN_DEVICES=cairn0=127.0.0.9");
    EXPECT_EQ(text_with(parse_devices("left=10.0.0.1").value(), wanted),
              "CAIRN_DEVICES=left=10.0.0.1,cairn0=127.0.0.9");
    const std::string three = "cairn0=10.0.0.1,cairn3=10.0.0.2,cairn1=2001:db8::1";
    EXPECT_EQ(text_with(parse_devices(three).value(), wanted), "CAIRN_DEVICES=" + three + ",cairn4=127.0.0.9");
}

constexpr int kGainsNothing = 77;  // perhaps the file system has no set-uid programs

// Runs in a copy of this program, for the test below.
TEST(DeviceConfigTest, DISABLED_VariablesOfASetUidProgram) {
    if (getauxval(AT_SECURE) == 0) {
        std::exit(kGainsNothing);
    }
    const Environment read = read_environment().value();
    EXPECT_EQ(read.pcap, "");
    EXPECT_FALSE(read.spins);
    EXPECT_TRUE(std::none_of(read.devices.begin(), read.devices.end(),
                             [](const DeviceConfig& each) { return each.name == "wanted"; }));
}

TEST(DeviceConfigTest, ASetUidProgramDoesNotBelieveWhoStartsIt) {
    constexpr uid_t kOther = 65534;
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "LeakSanitizer ends programs that may not be traced";
#endif
    const std::string program = testing::TempDir() + "set_uid_program_" + std::to_string(getpid());
    std::filesystem::copy_file("/proc/self/exe", program);
    if (geteuid() != 0 || chown(program.c_str(), kOther, kOther) != 0 || chmod(program.c_str(), S_ISUID | 0755) != 0) {
        std::filesystem::remove(program);
        GTEST_SKIP() << "only root makes another's program";
    }
    const pid_t child = fork();
    if (child == 0) {
        setenv("CAIRN_DEVICES", "wanted=127.0.0.1", 1);
        setenv("CAIRN_PCAP", "/tmp/wanted.pcap", 1);
        setenv("CAIRN_POLL", "spin", 1);
        execl(program.c_str(), program.c_str(), "--gtest_also_run_disabled_tests",
              "--gtest_filter=*VariablesOfASetUidProgram", nullptr);
        _exit(1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    std::filesystem::remove(program);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kGainsNothing) {
        GTEST_SKIP() << "the folder's set-uid programs gain nothing";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DeviceConfigTest, NamesAndAddressesComeOnce) {
    EXPECT_FALSE(parse_devices("a=10.0.0.1,b=10.0.0.1").ok());
    EXPECT_FALSE(parse_devices("a=10.0.0.1,a=10.0.0.2").ok());
}

TEST(DeviceConfigTest, AMachineHasADeviceForEachAddress) {
    const auto two = devices_of({net::IpAddress::from_v4(0x0a000001), net::IpAddress::from_v4(0x0a000002)});
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[1].name, "cairn1");
    EXPECT_EQ(two[1].address.text(), "10.0.0.2");
    const auto none = devices_of({});
    ASSERT_EQ(none.size(), 1U);
    EXPECT_EQ(none[0].name, "cairn0");
    EXPECT_EQ(none[0].address.text(), "127.0.0.1");
}

}  // namespace
}  // namespace cairn::ibverbs
