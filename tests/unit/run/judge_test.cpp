// The programs that are within reach, and why others are not.
#include <elf.h>
#include <gtest/gtest.h>

#include "apps/run/program.hpp"

namespace cairn::launch {
namespace {

const Libraries kLibraries{{"/opt/cairn/lib"}, {"libibverbs.so.1", "librdmacm.so.1"}, ""};

ProgramFacts usual() {
    ProgramFacts program;
    program.path = "/usr/bin/program";
    program.file = ElfFacts{EM_X86_64, "/lib64/ld-linux-x86-64.so.2", "", false};
    program.loaded = {{"libc.so.6", "/lib/libc.so.6"}, {"libibverbs.so.1", "/opt/cairn/lib/libibverbs.so.1"}};
    return program;
}

ElfFacts& facts_of(ProgramFacts& program) {
    return std::get<ElfFacts>(program.file);
}

void expect_refused(const ProgramFacts& program, const std::string& why) {
    const Status judged = judge_program(program, kLibraries);
    ASSERT_FALSE(judged.ok()) << why;
    EXPECT_NE(judged.error().what.find(why), std::string::npos) << judged.error().text();
    EXPECT_NE(judged.error().what.find(program.path), std::string::npos) << judged.error().text();
    EXPECT_FALSE(judged.error().remedy.empty());
}

TEST(JudgeTest, AUsualProgramIsWithinReach) {
    EXPECT_TRUE(judge_program(usual(), kLibraries).ok());
    ProgramFacts without = usual();
    without.loaded.clear();  // it may load the library later
    EXPECT_TRUE(judge_program(without, kLibraries).ok());
}

TEST(JudgeTest, FilesOfOtherKindsAreNot) {
    ProgramFacts program = usual();
    program.file = ElfError::NoElf;
    expect_refused(program, "neither an ELF program nor a script");
    program.file = ElfError::BigEndian;
    expect_refused(program, "another architecture");
    program.file = ElfError::Bits32;
    expect_refused(program, "another architecture");
    program.file = ElfError::Damaged;
    expect_refused(program, "damaged");
}

TEST(JudgeTest, WhatAnotherMachineRunsIsNot) {
    ProgramFacts program = usual();
    facts_of(program).machine = EM_AARCH64;
    expect_refused(program, "another architecture");
}

TEST(JudgeTest, StaticProgramsAndThoseOfOtherLibrariesAreNot) {
    ProgramFacts program = usual();
    facts_of(program).interpreter = "";
    expect_refused(program, "linked statically");
    facts_of(program).interpreter = "/lib/ld-musl-x86_64.so.1";
    expect_refused(program, "/lib/ld-musl-x86_64.so.1");
}

TEST(JudgeTest, WhoGainsRightsIsNot) {
    ProgramFacts program = usual();
    program.gains_rights = true;
    expect_refused(program, "setuid");
}

TEST(JudgeTest, WhoHasItsOwnVerbsIsNot) {
    ProgramFacts program = usual();
    facts_of(program).has_verbs = true;
    expect_refused(program, "linked in");
}

TEST(JudgeTest, ACopyThatIsLoadedFirstIsNamedWithTheRpathThatBringsIt) {
    ProgramFacts program = usual();
    program.loaded[1].path = "/opt/app/lib/libibverbs.so.1";
    expect_refused(program, "it loads /opt/app/lib/libibverbs.so.1 as libibverbs.so.1");
    facts_of(program).rpath = "$ORIGIN/../lib";
    expect_refused(program, "by its RPATH ($ORIGIN/../lib)");
    program.loaded[1] = {"librdmacm.so.1", "/usr/lib/librdmacm.so.1"};
    expect_refused(program, "/usr/lib/librdmacm.so.1");
}

TEST(JudgeTest, ACopyUnderAnotherNameIsFound) {
    ProgramFacts program = usual();
    program.loaded.push_back({"libibverbs-0a1b2c.so.1", "/opt/app/libs/libibverbs-0a1b2c.so.1"});
    expect_refused(program, "libibverbs-0a1b2c.so.1");
}

TEST(JudgeTest, WhatWeDoNotReplaceMayComeFromAnywhere) {
    const Libraries without_cm{{"/opt/cairn/lib"}, {"libibverbs.so.1"}, ""};
    ProgramFacts program = usual();
    program.loaded.push_back({"librdmacm.so.1", "/usr/lib/librdmacm.so.1"});
    EXPECT_TRUE(judge_program(program, without_cm).ok());
}

TEST(LoaderListingTest, LinesWithAPathAreRead) {
    const auto loaded = parse_loader_listing(
        "\tlinux-vdso.so.1 (0x00007ffe)\n"
        "\tlibibverbs.so.1 => /a b/libibverbs.so.1 (0x00007f1)\n"
        "\tlibgone.so => not found\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n"
        "\tlibc.so.6 => /lib/libc.so.6 (0x00007f3)");
    ASSERT_EQ(loaded.size(), 2U);
    EXPECT_EQ(loaded[0].name, "libibverbs.so.1");
    EXPECT_EQ(loaded[0].path, "/a b/libibverbs.so.1");
    EXPECT_EQ(loaded[1].path, "/lib/libc.so.6");
    EXPECT_TRUE(parse_loader_listing("").empty());
    EXPECT_TRUE(parse_loader_listing(" => /x (0x1)").empty());
}

TEST(ScriptTest, TheInterpreterIsTheFirstWord) {
    EXPECT_EQ(interpreter_of_script("#!/bin/sh\necho"), "/bin/sh");
    EXPECT_EQ(interpreter_of_script("#! \t/usr/bin/env python3 -u\n"), "/usr/bin/env");
    EXPECT_EQ(interpreter_of_script("#!/bin/sh"), "/bin/sh");
    EXPECT_EQ(interpreter_of_script("#!"), "");
    EXPECT_EQ(interpreter_of_script("#!\n/bin/sh"), "");
    EXPECT_EQ(interpreter_of_script("echo #!/bin/sh"), "");
    EXPECT_EQ(interpreter_of_script(""), "");
}

TEST(LibrariesTest, OursStandInFrontOfWhatWasSearched) {
    EXPECT_EQ(kLibraries.search_path(""), "/opt/cairn/lib");
    EXPECT_EQ(kLibraries.search_path("/a:/b"), "/opt/cairn/lib:/a:/b");
    EXPECT_EQ((Libraries{{"/x", "/y"}, {}, ""}.search_path("/z")), "/x:/y:/z");
}

}  // namespace
}  // namespace cairn::launch
