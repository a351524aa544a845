// ELF files, built word by word, and files of this machine.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "apps/run/elf_file.hpp"

namespace cairn::launch {
namespace {

constexpr std::uint64_t kLoadedAt = 0x400000;
constexpr std::uint64_t kTexts = 0x400;  // offsets in the file
constexpr std::uint64_t kDynamic = 0x500;
constexpr std::uint64_t kSections = 0x600;
constexpr std::uint64_t kSymbols = 0x800;
constexpr std::size_t kFileBytes = 0x900;

// A dynamic program with an interpreter, an RPATH and a function.
class Sample {
public:
    Sample() {
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_machine = EM_X86_64;
        header.e_phoff = sizeof(Elf64_Ehdr);
        header.e_phnum = 3;
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_shoff = kSections;
        header.e_shnum = 2;
        header.e_shentsize = sizeof(Elf64_Shdr);
        put(0, header);
        put_segment(0, {PT_INTERP, 0, kTexts + 1, 0, 0, 9, 9, 1});
        put_segment(1, {PT_LOAD, 0, 0, kLoadedAt, 0, kFileBytes, kFileBytes, 1});
        put_segment(2, {PT_DYNAMIC, 0, kDynamic, 0, 0, 3 * sizeof(Elf64_Dyn), 0, 1});
        const std::string texts("\0/lib/ld1\0/opt/lib\0ibv_open_device\0", 35);
        std::memcpy(file.data() + kTexts, texts.data(), texts.size());
        put_dynamic(0, DT_RPATH, 10);
        put_dynamic(1, DT_STRTAB, kLoadedAt + kTexts);
        put_dynamic(2, DT_NULL, 0);
        Elf64_Shdr symbols{};
        symbols.sh_type = SHT_SYMTAB;
        symbols.sh_offset = kSymbols;
        symbols.sh_size = sizeof(Elf64_Sym);
        symbols.sh_entsize = sizeof(Elf64_Sym);
        symbols.sh_link = 1;
        put(kSections, symbols);
        Elf64_Shdr names{};
        names.sh_type = SHT_STRTAB;
        names.sh_offset = kTexts;
        names.sh_size = 35;
        put(kSections + sizeof(Elf64_Shdr), names);
        put_symbol(SHN_UNDEF, STT_FUNC);
    }

    template <class Value>
    void put(std::uint64_t at, const Value& value) {
        std::memcpy(file.data() + at, &value, sizeof(value));
    }
    void put_segment(std::size_t index, const Elf64_Phdr& segment) {
        put(sizeof(Elf64_Ehdr) + index * sizeof(Elf64_Phdr), segment);
    }
    void put_dynamic(std::size_t index, std::int64_t tag, std::uint64_t value) {
        put(kDynamic + index * sizeof(Elf64_Dyn), Elf64_Dyn{tag, {value}});
    }
    void put_symbol(std::uint16_t section, unsigned type) {
        put(kSymbols, Elf64_Sym{19, static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type)), 0, section, 0, 0});
    }

    std::vector<std::uint8_t> file = std::vector<std::uint8_t>(kFileBytes);
};

ElfFacts facts_of(const Sample& sample) {
    const ElfParsed parsed = parse_elf(sample.file);
    EXPECT_TRUE(std::holds_alternative<ElfFacts>(parsed));
    return std::holds_alternative<ElfFacts>(parsed) ? std::get<ElfFacts>(parsed) : ElfFacts{};
}

void expect_error(const Sample& sample, ElfError error) {
    const ElfParsed parsed = parse_elf(sample.file);
    ASSERT_TRUE(std::holds_alternative<ElfError>(parsed));
    EXPECT_EQ(std::get<ElfError>(parsed), error);
}

TEST(ElfFileTest, ADynamicProgramTellsWhatItIsLoadedBy) {
    const Sample sample;
    const ElfFacts facts = facts_of(sample);
    EXPECT_EQ(facts.machine, EM_X86_64);
    EXPECT_EQ(facts.interpreter, "/lib/ld1");
    EXPECT_EQ(facts.rpath, "/opt/lib");
    EXPECT_FALSE(facts.has_verbs);
}

TEST(ElfFileTest, ARunpathTakesTheForceOfAnRpath) {
    Sample sample;
    sample.put_segment(2, {PT_DYNAMIC, 0, kDynamic, 0, 0, 4 * sizeof(Elf64_Dyn), 0, 1});
    sample.put_dynamic(2, DT_RUNPATH, 10);
    sample.put_dynamic(3, DT_NULL, 0);
    EXPECT_EQ(facts_of(sample).rpath, "");
    sample.put_dynamic(2, DT_NULL, 0);  // entries after the end do not count
    sample.put_dynamic(3, DT_RUNPATH, 10);
    EXPECT_EQ(facts_of(sample).rpath, "/opt/lib");
}

TEST(ElfFileTest, AStaticProgramHasNoInterpreter) {
    Sample sample;
    sample.put_segment(0, {PT_NULL, 0, 0, 0, 0, 0, 0, 0});
    sample.put_segment(2, {PT_NULL, 0, 0, 0, 0, 0, 0, 0});
    const ElfFacts facts = facts_of(sample);
    EXPECT_EQ(facts.interpreter, "");
    EXPECT_EQ(facts.rpath, "");
}

TEST(ElfFileTest, VerbsThatItDefinesAreFound) {
    Sample sample;
    sample.put_symbol(1, STT_FUNC);
    EXPECT_TRUE(facts_of(sample).has_verbs);
    sample.put_symbol(1, STT_OBJECT);
    EXPECT_FALSE(facts_of(sample).has_verbs);
}

TEST(ElfFileTest, OtherFilesAreNoElf) {
    Sample sample;
    sample.file[1] = 'e';
    expect_error(sample, ElfError::NoElf);
    EXPECT_EQ(std::get<ElfError>(parse_elf({})), ElfError::NoElf);
}

TEST(ElfFileTest, OtherMachinesAreNamed) {
    Sample big;
    big.file[EI_DATA] = ELFDATA2MSB;
    expect_error(big, ElfError::BigEndian);
    Sample narrow;
    narrow.file[EI_CLASS] = ELFCLASS32;
    expect_error(narrow, ElfError::Bits32);
}

TEST(ElfFileTest, WhatLiesOutsideIsDamage) {
    Sample segments;
    segments.put(offsetof(Elf64_Ehdr, e_phoff), std::uint64_t{kFileBytes - 100});
    expect_error(segments, ElfError::Damaged);
    Sample wrapped;
    wrapped.put(offsetof(Elf64_Ehdr, e_phoff), ~std::uint64_t{0});
    expect_error(wrapped, ElfError::Damaged);
    Sample sizes;
    sizes.put(offsetof(Elf64_Ehdr, e_phentsize), std::uint16_t{32});
    expect_error(sizes, ElfError::Damaged);
    Sample interpreter;
    interpreter.put_segment(0, {PT_INTERP, 0, kTexts + 1, 0, 0, 8, 8, 1});  // its end is cut off
    expect_error(interpreter, ElfError::Damaged);
    Sample dynamic;
    dynamic.put_segment(2, {PT_DYNAMIC, 0, kFileBytes - 8, 0, 0, 3 * sizeof(Elf64_Dyn), 0, 1});
    expect_error(dynamic, ElfError::Damaged);
    Sample texts;
    texts.put_dynamic(1, DT_STRTAB, kLoadedAt - 1);
    expect_error(texts, ElfError::Damaged);
    Sample rpath;
    rpath.put_dynamic(0, DT_RPATH, kFileBytes);
    expect_error(rpath, ElfError::Damaged);
}

TEST(ElfFileTest, DamagedSectionsHarmNothing) {
    Sample sample;
    sample.put_symbol(1, STT_FUNC);
    sample.put(offsetof(Elf64_Ehdr, e_shoff), std::uint64_t{kFileBytes});
    EXPECT_FALSE(facts_of(sample).has_verbs);
}

TEST(ElfFileTest, EachTruncationIsJudged) {
    const Sample sample;
    for (std::size_t bytes = 0; bytes <= sample.file.size(); ++bytes) {
        const std::vector<std::uint8_t> cut(sample.file.begin(),
                                            sample.file.begin() + static_cast<std::ptrdiff_t>(bytes));
        const ElfParsed parsed = parse_elf(cut);
        EXPECT_EQ(std::holds_alternative<ElfFacts>(parsed), bytes == sample.file.size()) << bytes;
    }
}

TEST(ElfFileTest, ThisVeryProgramIsDynamic) {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const ElfParsed parsed = parse_elf({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    ASSERT_TRUE(std::holds_alternative<ElfFacts>(parsed));
    EXPECT_EQ(std::get<ElfFacts>(parsed).machine, EM_X86_64);
    EXPECT_NE(std::get<ElfFacts>(parsed).interpreter.find("ld-linux"), std::string_view::npos);
}

}  // namespace
}  // namespace cairn::launch
