// Arguments of cairn-fsd, on the command line and in a file.
#include "apps/fsd/options.hpp"

#include <fstream>

#include "tests/unit/fs_daemon/guest.hpp"

namespace cairn::fsd {
namespace {

using fs::test::Folder;

Result<Options> parse(std::vector<std::string> arguments, std::vector<std::string> for_eal = {}) {
    const int first = static_cast<int>(for_eal.size()) + 1;
    arguments.insert(arguments.begin(), for_eal.begin(), for_eal.end());
    arguments.insert(arguments.begin(), "cairn-fsd");
    std::vector<char*> pointers;
    for (std::string& each : arguments) {
        pointers.push_back(each.data());
    }
    return parse_options(static_cast<int>(pointers.size()), pointers.data(), first);
}

// Expects a refusal that has a remedy and all of these words.
void expect_refusal(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
    const Result<Options> options = parse(arguments);
    ASSERT_FALSE(options.ok()) << arguments.front();
    EXPECT_FALSE(options.error().remedy.empty());
    for (const std::string& word : words) {
        EXPECT_NE(options.error().text().find(word), std::string::npos) << options.error().text();
    }
}

TEST(FsdOptionsTest, DefaultsAreForClientsOfThisMachineInMemory) {
    const Options options = parse({}).value();
    EXPECT_TRUE(options.stores.data_path.empty());
    EXPECT_TRUE(options.stores.pmem_path.empty());
    EXPECT_FALSE(options.stores.format);
    EXPECT_EQ(options.stores.chunk_bytes, std::nullopt);
    EXPECT_EQ(options.stores.spread, std::nullopt);
    EXPECT_EQ(options.stores.shards, 1U);
    EXPECT_EQ(options.shm_prefix, "/run/cairn-fs");
    EXPECT_EQ(options.socket_mode, 0666U);
    EXPECT_EQ(options.max_clients, 32U);
    EXPECT_EQ(options.max_user_clients, 16U);
    EXPECT_EQ(options.shape, (fs::ChannelShape{8, 2U << 20U}));
    EXPECT_FALSE(options.has_network());
}

TEST(FsdOptionsTest, EachArgumentIsTaken) {
    const Options options = parse({"--pmem-path",
                                   "p",
                                   "--allow-fake-pmem",
                                   "--capacity",
                                   "64M",
                                   "--chunk-size",
                                   "256K",
                                   "--shm-prefix",
                                   "x/y",
                                   "--socket-mode",
                                   "0640",
                                   "--daemons-per-node",
                                   "3",
                                   "--max-clients",
                                   "7",
                                   "--max-user-clients",
                                   "3",
                                   "--queue-depth",
                                   "64",
                                   "--extra-buffer-size",
                                   "1M",
                                   "--buffer-size",
                                   "8M",
                                   "--poll",
                                   "spin",
                                   "--placement",
                                   "koyama",
                                   "--format",
                                   "--stats",
                                   "9",
                                   "--key-file",
                                   "k",
                                   "--port",
                                   "uring:127.0.0.1"})
                                .value();
    EXPECT_EQ(options.stores.pmem_path, "p");
    EXPECT_TRUE(options.stores.allow_fake_pmem);
    EXPECT_EQ(options.stores.capacity_bytes, 64U << 20U);
    EXPECT_EQ(options.stores.chunk_bytes, 256U << 10U);
    EXPECT_EQ(options.shm_prefix, "x/y");
    EXPECT_EQ(options.socket_mode, 0640U);
    EXPECT_EQ(options.stores.shards, 3U);
    EXPECT_EQ(options.max_clients, 7U);
    EXPECT_EQ(options.max_user_clients, 3U);
    EXPECT_EQ(parse({"--max-clients", "7"}).value().max_user_clients, 4U);
    EXPECT_EQ(parse({"--max-clients", "1"}).value().max_user_clients, 1U);
    EXPECT_EQ(options.shape, (fs::ChannelShape{64, 1U << 20U}));
    EXPECT_EQ(options.buffer_bytes, 8U << 20U);
    EXPECT_TRUE(options.spin);
    EXPECT_EQ(options.stores.spread, fs::Spread::Koyama);
    EXPECT_TRUE(options.stores.format);
    EXPECT_EQ(options.stats_s, 9U);
    EXPECT_EQ(options.key_file, "k");
    EXPECT_TRUE(options.has_network());
    EXPECT_EQ(parse({"--capacity", "2T"}).value().stores.capacity_bytes, std::uint64_t{2} << 40U);
    EXPECT_EQ(parse({"--capacity", "16777216"}).value().stores.capacity_bytes, 16U << 20U);
}

TEST(FsdOptionsTest, AWrongArgumentIsNamed) {
    for (const char* size :
         {"", "M", "64X", "64MM", "-64M", "3M", "14M", "17M", "99999999999999999999", "99999999999T"}) {
        expect_refusal({"--capacity", size}, {"--capacity"});
    }
    for (const char* size : {"32K", "8M", "96K", "4G", "4294967296"}) {
        expect_refusal({"--chunk-size", size}, {"--chunk-size", size, "64K to 4M"});
    }
    for (const char* size : {"0", "1000", "65M", "8G"}) {
        expect_refusal({"--extra-buffer-size", size}, {"--extra-buffer-size", size});
    }
    for (const char* size : {"1000", "3G"}) {
        expect_refusal({"--buffer-size", size}, {"--buffer-size", size});
    }
    expect_refusal({"--queue-depth", "64", "--extra-buffer-size", "64M"}, {"--extra-buffer-size", "64M"});
    expect_refusal({"--queue-depth", "0"}, {"--queue-depth"});
    expect_refusal({"--queue-depth", "65"}, {"--queue-depth"});
    expect_refusal({"--max-clients", "0"}, {"--max-clients"});
    expect_refusal({"--daemons-per-node", "0"}, {"--daemons-per-node"});
    expect_refusal({"--socket-mode", "888"}, {"--socket-mode", "888"});
    expect_refusal({"--socket-mode", "1777"}, {"--socket-mode"});
    expect_refusal({"--poll", "often"}, {"--poll"});
    expect_refusal({"--placement", "odd"}, {"--placement"});
    expect_refusal({"--data-path", "a", "--pmem-path", "b"}, {"--data-path", "--pmem-path"});
    expect_refusal({"--allow-fake-pmem"}, {"--allow-fake-pmem"});
    expect_refusal({"--unknown"}, {"--unknown"});
}

TEST(FsdOptionsTest, SeveralNodesNeedANetworkWhichIsAPortOrEals) {
    const std::vector<std::string> own{"--nodes", "10.0.0.1,10.0.0.2", "--ip", "10.0.0.2", "--key-file", "k"};
    expect_refusal(own, {"--nodes", "--port"});
    const Options options = parse(own, {"--vdev=net_memif0", "--"}).value();
    EXPECT_TRUE(options.has_network());
    EXPECT_EQ(options.cluster.node, 1U);
}

constexpr const char* kTwoNodes = "192.0.2.1,192.0.2.2";

// Returns the arguments of a daemon among two, and these.
std::vector<std::string> with_nodes(std::vector<std::string> more, const std::string& nodes = kTwoNodes) {
    std::vector<std::string> all{"--nodes", nodes, "--port", "uring:192.0.2.2", "--key-file", "k"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

TEST(FsdOptionsTest, ADaemonFindsItselfAmongTheNodes) {
    const Options options = parse(with_nodes({"--daemons-per-node", "3"})).value();
    EXPECT_EQ(options.cluster.node, 1U);
    EXPECT_EQ(options.cluster.shards(), 6U);
    EXPECT_EQ(options.stores.nodes, 2U);
    EXPECT_EQ(options.stores.node, 1U);
    EXPECT_EQ(parse(with_nodes({"--node", "1"})).value().cluster.node, 1U);
    EXPECT_EQ(parse({"--nodes", kTwoNodes, "--key-file", "k", "--port", "uring:10.0.0.1", "--node", "0"})
                  .value()
                  .cluster.node,
              0U);
    EXPECT_EQ(
        parse({"--nodes", kTwoNodes, "--key-file", "k", "--port", "eth:0", "--ip", "192.0.2.1"}).value().cluster.node,
        0U);
    EXPECT_TRUE(parse({"--nodes", "192.0.2.2", "--port", "uring:192.0.2.2"}).value().cluster.is_alone());
}

TEST(FsdOptionsTest, AWrongNodeIsNamed) {
    for (const char* node : {"2", "4294967295"}) {
        expect_refusal(with_nodes({"--node", node}), {"--node", node, "count from 0"});
    }
    for (const char* node : {"", "-1", "one", "4294967296", "1x", "0,1"}) {
        SCOPED_TRACE(node);
        expect_refusal(with_nodes({"--node", node}), {"--node"});
    }
    expect_refusal({"--node", "1"}, {"--node 1", "1 nodes"});
    expect_refusal(with_nodes({"--node", "0"}), {"--node 0", "192.0.2.1", "192.0.2.2"});
    expect_refusal(with_nodes({}, "192.0.2.1,192.0.2.3"), {"192.0.2.2", "--nodes", "--port", "--node"});
    expect_refusal(with_nodes({}, "192.0.2.2,192.0.2.2"), {"192.0.2.2", "twice"});
    for (const char* address : {"host", "192.0.2", "192.0.2.1:7", "0.0.0.0", "224.0.0.1", "192.0.2.256"}) {
        expect_refusal(with_nodes({}, std::string("192.0.2.2,") + address), {address, "--port"});
    }
    expect_refusal({"--nodes", kTwoNodes, "--key-file", "k", "--node", "0"}, {"--nodes", "--port uring:ADDRESS"});
    expect_refusal({"--nodes", kTwoNodes, "--port", "uring:192.0.2.1"}, {"--nodes", "--key-file"});
    std::string many = "10.0.0.1";
    for (int i = 2; i != 80; ++i) {
        many += ",10.0.0." + std::to_string(i);
    }
    expect_refusal(with_nodes({"--daemons-per-node", "64"}, many), {"79", "64", "4096"});
}

class FsdConfigTest : public testing::Test {
protected:
    void write(const std::string& text) const { std::ofstream(path) << text; }
    [[nodiscard]] Result<Options> parse_with(std::vector<std::string> arguments) const {
        arguments.insert(arguments.end(), {"--config", path});
        return parse(arguments);
    }

    const Folder folder;
    const std::string path = folder / "fs.toml";
};

TEST_F(FsdConfigTest, TheFileHasTheSameNamesAndTheCommandLineCountsMore) {
    write("[fs]\ncapacity = \"64M\"\nmax-clients = 5\npoll = \"spin\"\nqueue-depth = 2\n");
    const Options options = parse_with({"--max-clients", "6"}).value();
    EXPECT_EQ(options.stores.capacity_bytes, 64U << 20U);
    EXPECT_EQ(options.max_clients, 6U);
    EXPECT_EQ(options.shape.slots, 2U);
    EXPECT_TRUE(options.spin);
    write("[fs]\nnodes = [\"192.0.2.1\", \"192.0.2.2\"]\nnode = 0\nkey-file = \"k\"\nport = \"uring:192.0.2.1\"\n");
    EXPECT_EQ(parse_with({}).value().cluster.nodes.size(), 2U);
    write("[fs]\nnodes = \"192.0.2.1,192.0.2.2\"\nkey-file = \"k\"\nport = \"uring:192.0.2.2\"\n");
    EXPECT_EQ(parse_with({}).value().cluster.node, 1U);
    write("[fs]\npmem-path = \"p\"\nallow-fake-pmem = true\n");
    EXPECT_TRUE(parse_with({}).value().stores.allow_fake_pmem);
    write("[fs]\nallow-fake-pmem = false\n");
    EXPECT_FALSE(parse_with({}).value().stores.allow_fake_pmem);
}

TEST_F(FsdConfigTest, AWrongLineIsNamed) {
    const auto refused = [this](const std::string& text, const std::vector<std::string>& words) {
        write(text);
        expect_refusal({"--config", path}, words);
    };
    refused("[fs]\ncapacity = \"64M\"\nqueue-depth = 99\n", {path + ":3", "queue-depth", "99"});
    refused("[fs]\ncapacity = \"3M\"\n", {path + ":2", "capacity", "3M"});
    refused("[fs]\nkapacity = \"64M\"\n", {path + ":2", "kapacity"});
    refused("[fs]\nformat = true\n", {path + ":2", "format"});  // each start would lose the data
    refused("[fs]\nconfig = \"other\"\n", {path + ":2", "config"});
    refused("[fs]\nmax-clients = [1]\n", {path + ":2", "max-clients"});
    refused("[fs]\nnodes = []\n", {path + ":2", "nodes"});
    refused("[fs]\nnodes = [[\"192.0.2.1\"]]\n", {path + ":2", "nodes"});
    refused("[fs]\nnodes = [\"host\"]\n", {"'host'"});
    refused("[fs]\nnode = -1\n", {path + ":2", "node"});
    refused("[fs]\nnode = \"x\"\n", {path + ":2", "node"});
    refused("[fs]\nnode = 1.5\n", {path + ":2", "node"});
    refused("[fs\n", {path + ":1"});
    refused("[stream]\n", {path, "[fs]"});
    refused("[fs]\ndata-path = \"a\"\npmem-path = \"b\"\n", {"--data-path", "--pmem-path"});
    expect_refusal({"--config", folder / "absent"}, {folder / "absent"});
}

TEST_F(FsdConfigTest, TheExampleIsGood) {
    const Result<Options> options = parse({"--config", CAIRN_EXAMPLE_CONFIG});
    ASSERT_TRUE(options.ok()) << options.error().text();
    EXPECT_EQ(options.value().stores.capacity_bytes, std::uint64_t{16} << 30U);
    const Options usual = parse({}).value();
    EXPECT_EQ(options.value().shm_prefix, usual.shm_prefix);
    EXPECT_EQ(options.value().socket_mode, usual.socket_mode);
    EXPECT_EQ(options.value().max_clients, usual.max_clients);
    EXPECT_EQ(options.value().max_user_clients, usual.max_user_clients);
    EXPECT_EQ(options.value().shape, usual.shape);
    EXPECT_EQ(options.value().spin, usual.spin);
    EXPECT_FALSE(options.value().has_network());
}

}  // namespace
}  // namespace cairn::fsd
