#include "lib/rdmacm/object_slots.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace cairn::rdmacm {

namespace {

struct Tables {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    std::span<const ElfW(Rela)> calls{};  // slots of the procedure linkage table
    std::span<const ElfW(Rela)> others{};
};

// Converts an address of the object. The loader made some absolute, and left others as they stand in the file.
template <class To>
[[nodiscard]] const To* at(const link_map& object, ElfW(Addr) address) noexcept {
    return reinterpret_cast<const To*>(address < object.l_addr ? address + object.l_addr : address);
}

[[nodiscard]] Tables tables_of(const link_map& object) noexcept {
    Tables found;
    const ElfW(Rela)* calls = nullptr;
    const ElfW(Rela)* others = nullptr;
    std::size_t calls_bytes = 0;
    std::size_t others_bytes = 0;
    for (const ElfW(Dyn)* each = object.l_ld; each->d_tag != DT_NULL; ++each) {
        switch (each->d_tag) {
            case DT_SYMTAB:
                found.symbols = at<ElfW(Sym)>(object, each->d_un.d_ptr);
                break;
            case DT_STRTAB:
                found.names = at<char>(object, each->d_un.d_ptr);
                break;
            case DT_JMPREL:
                calls = at<ElfW(Rela)>(object, each->d_un.d_ptr);
                break;
            case DT_PLTRELSZ:
                calls_bytes = each->d_un.d_val;
                break;
            case DT_RELA:
                others = at<ElfW(Rela)>(object, each->d_un.d_ptr);
                break;
            case DT_RELASZ:
                others_bytes = each->d_un.d_val;
                break;
            default:
                break;
        }
    }
    if (calls != nullptr) {
        found.calls = {calls, calls_bytes / sizeof(ElfW(Rela))};
    }
    if (others != nullptr) {
        found.others = {others, others_bytes / sizeof(ElfW(Rela))};
    }
    return found;
}

// Visits each slot that holds the address of a function: with the symbol, its name, and the slot.
template <class Visit>
void each_slot(const link_map& object, const Visit& visit) noexcept {
    const Tables tables = tables_of(object);
    for (const auto& relocations : {tables.calls, tables.others}) {
        for (const ElfW(Rela) & each : relocations) {
            const auto kind = ELF64_R_TYPE(each.r_info);
            if (kind == R_X86_64_JUMP_SLOT || kind == R_X86_64_GLOB_DAT) {
                const ElfW(Sym)& symbol = tables.symbols[ELF64_R_SYM(each.r_info)];
                visit(symbol, std::string_view(tables.names + symbol.st_name),
                      reinterpret_cast<void**>(object.l_addr + each.r_offset));
            }
        }
    }
}

// The part of an object that the loader made read-only after it filled the slots.
struct Sealed {
    ElfW(Addr) object;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] bool protect(int protection) const noexcept {
        return begin == end || mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
    }
};

[[nodiscard]] Sealed sealed_of(const link_map& object) noexcept {
    Sealed found{object.l_addr};
    const auto visit = [](dl_phdr_info* info, std::size_t, void* out) {
        auto& wanted = *static_cast<Sealed*>(out);
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        if (info->dlpi_addr != wanted.object) {
            return 0;
        }
        for (const ElfW(Phdr) & each : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
            if (each.p_type == PT_GNU_RELRO) {
                const std::uintptr_t begin = info->dlpi_addr + each.p_vaddr;
                wanted.begin = begin & ~(page - 1);
                wanted.end = (begin + each.p_memsz) & ~(page - 1);
            }
        }
        return 1;
    };
    dl_iterate_phdr(visit, &found);
    return found;
}

}  // namespace

bool imports(const link_map& object, std::string_view name) noexcept {
    bool found = false;
    each_slot(object, [&](const ElfW(Sym) & symbol, std::string_view called, void**) {
        found = found || (symbol.st_shndx == SHN_UNDEF && called == name);
    });
    return found;
}

bool bind_own(const link_map& object, std::span<const Redirect> redirects) noexcept {
    const Sealed sealed = sealed_of(object);
    if (!sealed.protect(PROT_READ | PROT_WRITE)) {
        return false;
    }
    each_slot(object, [&](const ElfW(Sym) & symbol, std::string_view called, void** slot) {
        if (symbol.st_shndx != SHN_UNDEF) {
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
                *slot = reinterpret_cast<void*>(object.l_addr + symbol.st_value);
            }
            return;
        }
        const auto redirect = std::find_if(redirects.begin(), redirects.end(),
                                           [called](const Redirect& each) { return each.name == called; });
        if (redirect != redirects.end()) {
            *slot = redirect->to;
        }
    });
    return sealed.protect(PROT_READ);
}

}  // namespace cairn::rdmacm
