// The files of our devices that programs read below /sys/class.
#include <gtest/gtest.h>

#include "apps/run/view_files.hpp"
#include "lib/ibverbs/description.hpp"

namespace cairn::launch {
namespace {

class ViewFilesTest : public testing::Test {
protected:
    [[nodiscard]] std::string text_of(const std::string& path) const {
        for (const ViewFile& file : files_) {
            if (file.path == path) {
                return file.text;
            }
        }
        return "no such file";
    }

    std::vector<ViewFile> files_ = class_files({{"left", net::IpAddress::parse("192.0.2.200").value()},
                                                {"right", net::IpAddress::parse("2001:db8::7").value()}},
                                               {"eth0", "eth1"});
};

TEST_F(ViewFilesTest, ADeviceIsWhatTheLibraryDescribes) {
    ibv_device_attr device{};
    ibverbs::describe_device({"left", net::IpAddress::parse("192.0.2.200").value()}, device);
    EXPECT_EQ(text_of("infiniband/left/fw_ver"), std::string(device.fw_ver) + "\n");
    EXPECT_EQ(text_of("infiniband/left/node_guid"), "00ca:c0ff:fe00:02c8\n");
    EXPECT_EQ(text_of("infiniband/left/sys_image_guid"), "00ca:c0ff:fe00:02c8\n");
    EXPECT_EQ(text_of("infiniband/left/node_type"), "1: CA\n");
    EXPECT_EQ(text_of("infiniband/left/hca_type"), "CAIRN\n");
    EXPECT_EQ(text_of("infiniband/left/hw_rev"), "0\n");
    EXPECT_EQ(text_of("infiniband/left/device/vendor"), "0xffffff\n");
    EXPECT_EQ(text_of("infiniband/right/device/device"), "0x0000\n");
}

// Programs list the folder to get the interface's name.
TEST_F(ViewFilesTest, EachDeviceHasItsInterface) {
    EXPECT_EQ(text_of("infiniband/left/device/net/eth0/dev_port"), "0\n");
    EXPECT_EQ(text_of("infiniband/right/device/net/eth1/dev_id"), "0x0\n");
    EXPECT_EQ(text_of("infiniband/right/device/net/eth0/dev_port"), "no such file");
    EXPECT_EQ(text_of("infiniband_verbs/" + device_node(1) + "/device/net/eth1/dev_port"), "0\n");
}

TEST_F(ViewFilesTest, APortIsOneOfEthernet) {
    EXPECT_EQ(text_of("infiniband/left/ports/1/state"), "4: ACTIVE\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/phys_state"), "5: LinkUp\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/link_layer"), "Ethernet\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/rate"), "100 Gb/sec (4X EDR)\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/lid"), "0x0\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/pkeys/0"), "0xffff\n");
}

TEST_F(ViewFilesTest, EachGidHasItsTypeAndInterfaceAndEmptyPlacesHaveNone) {
    EXPECT_EQ(text_of("infiniband/left/ports/1/gids/0"), "fe80:0000:0000:0000:00ca:c0ff:fe00:02c8\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:c000:02c8\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gids/7"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gids/8"), "no such file");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gid_attrs/types/1"), "RoCE v2\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gid_attrs/ndevs/1"), "eth0\n");
    EXPECT_EQ(text_of("infiniband/left/ports/1/gid_attrs/types/2"), "no such file");
    EXPECT_EQ(text_of("infiniband/right/ports/1/gid_attrs/ndevs/2"), "eth1\n");
}

TEST_F(ViewFilesTest, ADeviceNodeLeadsToItsDevice) {
    EXPECT_EQ(text_of("infiniband_verbs/" + device_node(0) + "/ibdev"), "left\n");
    EXPECT_EQ(text_of("infiniband_verbs/" + device_node(1) + "/ibdev"), "right\n");
    EXPECT_EQ(device_node(1), "uverbs1");  // as in Device::dev_name
}

TEST_F(ViewFilesTest, EachFileStandsOnceAndEndsWithALine) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
        EXPECT_EQ(files_[i].text.back(), '\n') << files_[i].path;
        for (std::size_t k = 0; k < i; ++k) {
            EXPECT_NE(files_[i].path, files_[k].path);
        }
    }
}

}  // namespace
}  // namespace cairn::launch
