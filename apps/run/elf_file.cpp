#include "apps/run/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

namespace cairn::launch {

namespace {

// The functions without which no program opens a device.
constexpr std::array<std::string_view, 2> kVerbs{"ibv_get_device_list", "ibv_open_device"};

// Reads within the bounds of a file. Parts outside are nullopt.
class Image {
public:
    explicit Image(std::span<const std::uint8_t> file) noexcept : file_(file) {}

    [[nodiscard]] std::optional<std::span<const std::uint8_t>> part(std::uint64_t at,
                                                                    std::uint64_t bytes) const noexcept {
        if (at > file_.size() || bytes > file_.size() - at) {
            return std::nullopt;
        }
        return file_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
    }
    template <class Value>
    [[nodiscard]] std::optional<Value> value(std::uint64_t at) const noexcept {
        const auto bytes = part(at, sizeof(Value));
        if (!bytes) {
            return std::nullopt;
        }
        Value read;
        std::memcpy(&read, bytes->data(), sizeof(Value));
        return read;
    }
    // Reads a table of `count` entries. Returns nullopt also if its entries have another size than ours.
    template <class Entry>
    [[nodiscard]] std::optional<std::vector<Entry>> table(std::uint64_t at, std::uint64_t count,
                                                          std::uint64_t entry_bytes) const {
        if (count == 0) {
            return std::vector<Entry>{};
        }
        if (entry_bytes != sizeof(Entry) || count > file_.size() / sizeof(Entry)) {
            return std::nullopt;
        }
        const auto bytes = part(at, count * sizeof(Entry));
        if (!bytes) {
            return std::nullopt;
        }
        std::vector<Entry> read(static_cast<std::size_t>(count));
        std::memcpy(read.data(), bytes->data(), bytes->size());
        return read;
    }

private:
    std::span<const std::uint8_t> file_;
};

// Returns the text at `at` of a table of texts; nullopt if it does not end there.
std::optional<std::string_view> text_at(std::span<const std::uint8_t> texts, std::uint64_t at) noexcept {
    if (at >= texts.size()) {
        return std::nullopt;
    }
    const auto rest = texts.subspan(static_cast<std::size_t>(at));
    const auto end = std::find(rest.begin(), rest.end(), std::uint8_t{0});
    if (end == rest.end()) {
        return std::nullopt;
    }
    return std::string_view(reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin()));
}

using Segments = std::vector<Elf64_Phdr>;

// Returns the bytes that are loaded from `address` on, up to the end of its segment.
std::optional<std::span<const std::uint8_t>> loaded_at(const Image& image, const Segments& segments,
                                                       std::uint64_t address) noexcept {
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
            const auto whole = image.part(segment.p_offset, segment.p_filesz);
            return whole ? std::optional(whole->subspan(static_cast<std::size_t>(address - segment.p_vaddr)))
                         : std::nullopt;
        }
    }
    return std::nullopt;
}

// Returns the entries of the dynamic section up to its end; nullopt if it lies outside.
std::optional<std::vector<Elf64_Dyn>> dynamic_entries(const Image& image, const Segments& segments) {
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_DYNAMIC) {
            auto entries =
                image.table<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn), sizeof(Elf64_Dyn));
            if (entries) {
                const auto end = std::find_if(entries->begin(), entries->end(),
                                              [](const Elf64_Dyn& entry) noexcept { return entry.d_tag == DT_NULL; });
                entries->erase(end, entries->end());
            }
            return entries;
        }
    }
    return std::vector<Elf64_Dyn>{};
}

bool read_dynamic(const Image& image, const Segments& segments, ElfFacts& facts) {
    const auto entries = dynamic_entries(image, segments);
    if (!entries) {
        return false;
    }
    const auto named = std::find_if(entries->begin(), entries->end(),
                                    [](const Elf64_Dyn& entry) noexcept { return entry.d_tag == DT_STRTAB; });
    if (named == entries->end()) {
        return entries->empty();
    }
    const auto texts = loaded_at(image, segments, named->d_un.d_ptr);
    if (!texts) {
        return false;
    }
    bool has_runpath = false;
    for (const Elf64_Dyn& entry : *entries) {
        has_runpath = has_runpath || entry.d_tag == DT_RUNPATH;
        if (entry.d_tag == DT_RPATH) {
            const auto text = text_at(*texts, entry.d_un.d_val);
            if (!text) {
                return false;
            }
            facts.rpath = *text;
        }
    }
    if (has_runpath) {
        facts.rpath = {};  // the loader then ignores it, and searches DT_RUNPATH after LD_LIBRARY_PATH
    }
    return true;
}

bool read_interpreter(const Image& image, const Segments& segments, ElfFacts& facts) noexcept {
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_INTERP) {
            const auto texts = image.part(segment.p_offset, segment.p_filesz);
            const auto text = texts ? text_at(*texts, 0) : std::nullopt;
            facts.interpreter = text.value_or("");
            return text.has_value();
        }
    }
    return true;
}

// Returns whether the table of symbols defines a verbs function.
bool defines_verbs(const Image& image, const Elf64_Shdr& symbols, const Elf64_Shdr& names) {
    const auto texts = image.part(names.sh_offset, names.sh_size);
    const auto table =
        image.table<Elf64_Sym>(symbols.sh_offset, symbols.sh_size / sizeof(Elf64_Sym), symbols.sh_entsize);
    if (!texts || !table) {
        return false;
    }
    return std::any_of(table->begin(), table->end(), [&texts](const Elf64_Sym& symbol) noexcept {
        const bool is_defined = symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
        const auto name = is_defined ? text_at(*texts, symbol.st_name) : std::nullopt;
        return name && std::find(kVerbs.begin(), kVerbs.end(), *name) != kVerbs.end();
    });
}

// Reads the symbols. Sections do not take part in loading: a wrong one is skipped.
void read_symbols(const Image& image, const Elf64_Ehdr& header, ElfFacts& facts) {
    const auto sections = image.table<Elf64_Shdr>(header.e_shoff, header.e_shnum, header.e_shentsize);
    if (!sections) {
        return;
    }
    for (const Elf64_Shdr& section : *sections) {
        const bool has_symbols = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
        if (has_symbols && section.sh_link < sections->size()) {
            facts.has_verbs = facts.has_verbs || defines_verbs(image, section, (*sections)[section.sh_link]);
        }
    }
}

}  // namespace

ElfParsed parse_elf(std::span<const std::uint8_t> file) {
    const Image image(file);
    const auto ident = image.part(0, EI_NIDENT);
    if (!ident || std::memcmp(ident->data(), ELFMAG, SELFMAG) != 0) {
        return ElfError::NoElf;
    }
    if ((*ident)[EI_DATA] != ELFDATA2LSB) {
        return ElfError::BigEndian;
    }
    if ((*ident)[EI_CLASS] != ELFCLASS64) {
        return ElfError::Bits32;
    }
    const auto header = image.value<Elf64_Ehdr>(0);
    if (!header) {
        return ElfError::Damaged;
    }
    const auto segments = image.table<Elf64_Phdr>(header->e_phoff, header->e_phnum, header->e_phentsize);
    ElfFacts facts;
    facts.machine = header->e_machine;
    if (!segments || !read_interpreter(image, *segments, facts) || !read_dynamic(image, *segments, facts)) {
        return ElfError::Damaged;
    }
    read_symbols(image, *header, facts);
    return facts;
}

}  // namespace cairn::launch
