// How EAL's arguments and complaints are translated.
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

// The first lines of EAL's parser, before its list of arguments, which names lcores, huge pages and all else.
TEST(ExplainEalFailure, EachRefusalOfAnArgumentIsToldInEalsWordsAndNamesIt) {
    constexpr const char* kUsage =
        "\nUsage: prog [options]\n\nEAL common options:\n  -c COREMASK         Hexadecimal bitmask of cores to run on\n"
        "  --lcores COREMAP    Map lcore set to physical cpu set\n  --socket-mem        Memory to allocate on sockets\n"
        "  --no-huge           Use malloc instead of hugetlbfs\n  mmap, probe, invalid option, memseg\n";
    const std::array<Complaint, 34> refusals{{
        {"EAL: Option --huge-unlink cannot be specified together with --no-huge", "--huge-unlink", "leave one of"},
        {"EAL: Option --socket-mem cannot be specified together with --no-huge", "--socket-mem", "leave one of"},
        {"EAL: Options -m and --socket-mem cannot be specified at the same time", "-m and --socket-mem",
         "leave one of"},
        {"EAL: Option --huge-worker-stack cannot be specified together with --no-huge", "--no-huge", "leave one of"},
        {"EAL: Option --single-file-segments is not compatible with --huge-unlink", "--huge-unlink", "leave one of"},
        {"EAL: Using --huge-unlink=never may create data leaks.\n"
         "EAL: Option --in-memory is not compatible with --huge-unlink=never",
         "--in-memory", "leave one of"},
        {"EAL: Option --legacy-mem is not compatible with --in-memory", "--in-memory", "leave one of"},
        {"EAL: Option --legacy-mem is not compatible with --match-allocations", "--match-allocations", "--no-huge"},
        {"EAL: Options allow (-a) and block (-b) can't be used at the same time", "(-a)", "leave one of"},
        {"EAL: Option -c is ignored, because (-l) is set!", "-c is ignored, because (-l)", "leave one of"},
        {"EAL: Invalid process type specified", "process type", "--proc-type"},
        {"EAL: Invalid length of --file-prefix option", "--file-prefix", "another value"},
        {"EAL: Invalid char, '%', in --file-prefix option", "--file-prefix", "another value"},
        {"EAL: Invalid length of --huge-dir option", "--huge-dir", "another value"},
        {"EAL: Invalid length of --mbuf-pool-ops-name option", "--mbuf-pool-ops-name", "another value"},
        {"EAL: invalid --huge-unlink option", "--huge-unlink", "existing"},
        {"EAL: invalid channel number", "channel number", "-n "},
        {"EAL: invalid rank number", "rank number", "-r "},
        {"EAL: invalid parameter for --main-lcore", "--main-lcore", "another value"},
        {"EAL: Main lcore is not enabled for DPDK", "Main lcore", "--main-lcore"},
        {"EAL: invalid parameters for --syslog", "--syslog", "another value"},
        {"EAL: eal_trace_bufsz_args_save():188 buffer size cannot be zero\nEAL: invalid parameters for --trace-bufsz",
         "--trace-bufsz", "another value"},
        {"Invalid log level: x\nEAL: invalid parameters for --log-level", "--log-level", "another value"},
        {"EAL: invalid parameters for --iova-mode", "--iova-mode", "another value"},
        {"EAL: Invalid bitwidth value!\nEAL: invalid parameter for --force-max-simd-bitwidth",
         "--force-max-simd-bitwidth", "another value"},
        {"EAL: lcore 99 unavailable\nEAL: invalid core list, please check specified cores are part of 0-1",
         "part of 0-1", "-l 0"},
        {"EAL: lcore 8 unavailable\nEAL: invalid coremask, please check specified cores are part of 0-1", "part of 0-1",
         "-l 0"},
        {"EAL: core 99 unavailable\nEAL: invalid parameter for --lcores", "--lcores", "--lcores="},
        {"EAL: invalid service coremask", "service coremask", "-s "},
        {"EAL: lcore 0 is main lcore, cannot use as service core\nEAL: invalid service core list", "service core",
         "-S"},
        {"prog: invalid option -- 'z'\nprog: invalid option -- 'z'", "'z'", "--help"},
        {"prog: option '--no-huge' doesn't allow an argument", "'--no-huge'", "leave the value"},
        {"prog: option requires an argument -- 'm'", "'m'", "give it"},
        {"prog: option '--h' is ambiguous; possibilities: '--help' '--huge-dir'", "'--h'", "write"},
    }};
    for (const Complaint& refusal : refusals) {
        const Error error = explain_eal_failure(std::string(refusal.output) + "\n" + kUsage);
        EXPECT_NE(error.what.find(refusal.quoted), std::string::npos) << error.text();
        EXPECT_NE(error.remedy.find(refusal.remedy), std::string::npos) << error.text();
    }
    EXPECT_EQ(explain_eal_failure(kUsage + 1).what, "EAL does not start: it gives no reason");
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
    const std::array<Case, 9> cases{{
        {{"prog", "-l", "3"}, {"--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry"}},
        {{"prog", "--lcores", "(0-1)@0"}, {"--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry"}},
        {{"prog", "-m", "512"}, {"--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "--lcores=0@(7)"}},
        {{"prog", "--no-huge", "-l0"}, {"--no-pci", "--no-shconf", "--no-telemetry"}},
        {{"prog", "--huge-dir=/x", "-c", "1", "--no-telemetry"}, {"--no-pci", "--no-shconf"}},
        {{"prog", "--in-memory", "-m", "512", "-l", "0"}, {"--no-pci", "--no-telemetry"}},
        {{"prog", "--match-allocations", "-l", "0"}, {"--no-pci", "--no-shconf", "--no-telemetry"}},
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
    // "--main-lcore" is not "-m", and "--log-level" is not "-l".
    const Words made = arguments_without_device(CommandLine{"prog", "--main-lcore=0", "--log-level=info"}.span(), "0");
    EXPECT_NE(std::find(made.begin(), made.end(), "--no-huge"), made.end());
    EXPECT_NE(std::find(made.begin(), made.end(), "--lcores=0@(0)"), made.end());
}

}  // namespace
}  // namespace cairn::pmd
