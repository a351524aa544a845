// What is made of EAL's arguments and complaints.
#include "pmd_glue/eal_arguments.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cairn::pmd {
namespace {

struct Complaint {
    const char* output;
    const char* quoted;
    const char* remedy;
};

TEST(ExplainEalFailure, QuotesTheLineThatNamesTheCauseAndSaysWhatHelps) {
    const std::array<Complaint, 7> complaints{{
        {"EAL: Detected CPU lcores: 2\nprog: unrecognized option '--nonsense'\n\nUsage: prog\n", "'--nonsense'",
         "--help"},
        {"EAL: Cannot create lock on '/run/x/config'. Is another primary process running?\nEAL: Cannot init config\n",
         "/run/x/config", "--file-prefix"},
        {"EAL: failed to parse device \"net_nonsense0\"\nEAL: Unable to parse device\n", "net_nonsense0", "--vdev"},
        {"EAL: FATAL: Cannot get hugepage information.\n", "hugepage information", "--no-huge"},
        {"EAL: No free 2048 kB hugepages reported on node 0\nEAL: Cannot init memory\n", "No free 2048 kB",
         "--no-huge"},
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

}  // namespace
}  // namespace cairn::pmd
