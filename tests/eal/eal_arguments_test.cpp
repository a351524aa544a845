// What is made of EAL's arguments and complaints.
#include "pmd_glue/eal_arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace cairn::pmd {
namespace {

struct Complaint {
    const char* output;
    const char* quoted;
    const char* remedy;
};

TEST(ExplainEalFailure, QuotesTheLineThatNamesTheCauseAndSaysWhatHelps) {
    const std::array<Complaint, 8> complaints{{
        {"EAL: Detected CPU lcores: 2\nprog: unrecognized option '--nonsense'\n\nUsage: prog\n", "'--nonsense'",
         "--help"},
        {"EAL: Cannot create lock on '/run/x/config'. Is another primary process running?\nEAL: Cannot init config\n",
         "/run/x/config", "--file-prefix"},
        {"EAL: failed to parse device \"net_nonsense0\"\nEAL: Unable to parse device\n", "net_nonsense0", "--vdev"},
        {"EAL: FATAL: Cannot get hugepage information.\n", "hugepage information", "--no-huge"},
        {"EAL: No free 2048 kB hugepages reported on node 0\nEAL: Cannot init memory\n", "No free 2048 kB",
         "--no-huge"},
        {"EAL: Error creating '/tmp/dpdk/rte': Permission denied\nEAL: No DPDK runtime directory created\n",
         "/tmp/dpdk/rte", "XDG_RUNTIME_DIR"},
        {"EAL: Couldn't create /dev/hugepages/x: Permission denied\n", "Permission denied", "--no-huge"},
        {"something new\nand more\n", "something new", "--log-level=debug"},
    }};
    for (const Complaint& complaint : complaints) {
        const Error error = explain_eal_failure(complaint.output);
        EXPECT_NE(error.what.find(complaint.quoted), std::string::npos) << error.text();
        EXPECT_NE(error.remedy.find(complaint.remedy), std::string::npos) << error.text();
        EXPECT_EQ(error.text().find('\n'), std::string::npos) << error.text();
    }
    EXPECT_FALSE(explain_eal_failure("").what.empty());
}

TEST(MemifListeningFile, IsThatOfAServerOnAnOrdinarySocketOnly) {
    EXPECT_EQ(memif_listening_file("net_memif0,role=server,socket=/x,socket-abstract=no"), "/x");
    EXPECT_EQ(memif_listening_file("net_memif0,role=client,socket=/x,socket-abstract=no"), std::nullopt);
    EXPECT_EQ(memif_listening_file("net_memif0,role=server,socket=/x"), std::nullopt);
    EXPECT_EQ(memif_listening_file("net_ring0,role=server,socket=/x,socket-abstract=no"), std::nullopt);
}

TEST(VdevArguments, AreFoundInBothFormsBeforeTheDashes) {
    std::array<char[24], 7> text{"prog", "--vdev", "a,b=1", "--vdev=c", "-l", "--", "--vdev=d"};
    std::array<char*, 7> arguments{};
    for (std::size_t i = 0; i < text.size(); ++i) {
        arguments[i] = text[i];
    }
    EXPECT_EQ(vdev_arguments(arguments), (std::vector<std::string>{"a,b=1", "c"}));
}

// A command line as main() gets it.
class CommandLine {
public:
    CommandLine(std::initializer_list<const char*> words) : words_(words.begin(), words.end()) {
        for (std::string& word : words_) {
            pointers_.push_back(word.data());
        }
    }
    [[nodiscard]] std::span<char* const> span() const { return pointers_; }

private:
    std::vector<std::string> words_;
    std::vector<char*> pointers_;
};

TEST(AsksForPort, IsTrueOfAPortArgumentInEitherFormThatNamesOneOfThatKind) {
    EXPECT_TRUE(asks_for_port(CommandLine{"prog", "--port", "uring:127.0.0.1"}.span(), "uring"));
    EXPECT_TRUE(asks_for_port(CommandLine{"prog", "--port=uring:127.0.0.1"}.span(), "uring"));
    EXPECT_TRUE(asks_for_port(CommandLine{"prog", "--port", "uring", "--server"}.span(), "uring"));
    EXPECT_TRUE(asks_for_port(CommandLine{"prog", "-l", "0", "--", "--server", "--port", "uring:::1"}.span(), "uring"));
    EXPECT_TRUE(asks_for_port(CommandLine{"prog", "--", "--port", "eth:0", "--port", "uring"}.span(), "uring"));
    EXPECT_TRUE(asks_for_port(CommandLine{"prog", "--port", "eth:0"}.span(), "eth"));
}

TEST(AsksForPort, IsFalseOfAnythingElse) {
    EXPECT_FALSE(asks_for_port(CommandLine{"prog"}.span(), "uring"));
    EXPECT_FALSE(asks_for_port(CommandLine{"uring", "--", "--server"}.span(), "uring"));
    EXPECT_FALSE(asks_for_port(CommandLine{"prog", "--port", "eth:0"}.span(), "uring"));
    EXPECT_FALSE(asks_for_port(CommandLine{"prog", "--server", "--port"}.span(), "uring"));
    EXPECT_FALSE(asks_for_port(CommandLine{"prog", "--uring", "plain", "--", "--port=eth:0"}.span(), "uring"));
    EXPECT_FALSE(asks_for_port(CommandLine{"prog", "--pcap", "uring:127.0.0.1"}.span(), "uring"));
}

using Words = std::vector<std::string>;

TEST(ArgumentsWithoutDevice, AddAllThatIsMissing) {
    EXPECT_EQ(
        arguments_without_device(CommandLine{"prog"}.span(), "0,1"),
        (Words{"prog", "--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry", "--lcores=0@(0,1)"}));
}

TEST(ArgumentsWithoutDevice, HaveAsManyLcoresAsAreAskedFor) {
    EXPECT_EQ(arguments_without_device(CommandLine{"prog"}.span(), "0,1", 3).back(), "--lcores=(0-2)@(0,1)");
    EXPECT_EQ(arguments_without_device(CommandLine{"prog", "-l", "1"}.span(), "0,1", 3).back(), "--no-telemetry");
}

TEST(ArgumentsWithoutDevice, LeaveWhatIsGivenAndDoNotContradictIt) {
    struct Case {
        CommandLine given;
        Words added;
    };
    const std::array<Case, 8> cases{{
        {{"prog", "-l", "3"}, {"--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry"}},
        {{"prog", "--lcores", "(0-1)@0"}, {"--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry"}},
        {{"prog", "-m", "512"}, {"--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "--lcores=0@(7)"}},
        {{"prog", "--no-huge", "-l0"}, {"--no-pci", "--no-shconf", "--no-telemetry"}},
        {{"prog", "--huge-dir=/x", "-c", "1", "--no-telemetry"}, {"--no-pci", "--no-shconf"}},
        {{"prog", "--in-memory", "-m", "512", "-l", "0"}, {"--no-pci", "--no-telemetry"}},
        {{"prog", "-a", "0000:01:00.0", "-l", "0", "-m64"}, {"--no-huge", "--no-shconf", "--no-telemetry"}},
        {{"prog", "--file-prefix=a", "-l", "0", "-m64"}, {"--no-huge", "--no-pci", "--no-telemetry"}},
    }};
    for (const Case& each : cases) {
        Words expected(each.given.span().begin(), each.given.span().end());
        expected.insert(expected.end(), each.added.begin(), each.added.end());
        EXPECT_EQ(arguments_without_device(each.given.span(), "7"), expected);
    }
}

TEST(ArgumentsWithoutDevice, AreNotMisledByLongerNames) {
    // "--main-lcore" is no "-m", "--log-level" no "-l".
    const Words made = arguments_without_device(CommandLine{"prog", "--main-lcore=0", "--log-level=info"}.span(), "0");
    EXPECT_NE(std::find(made.begin(), made.end(), "--no-huge"), made.end());
    EXPECT_NE(std::find(made.begin(), made.end(), "--lcores=0@(0)"), made.end());
}

}  // namespace
}  // namespace cairn::pmd
