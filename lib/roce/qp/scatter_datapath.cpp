#include "lib/roce/qp/scatter.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/base/user_memory.hpp"

namespace cairn::roce {

namespace {

// Writes a word. Pairs with the acquire of a reader that polls the word.
template <class Word>
void store_last(std::uint8_t* to, const std::uint8_t* from) noexcept {
    Word word{};
    std::memcpy(&word, from, sizeof(word));
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
}

template <class Word>
bool is_aligned(const std::uint8_t* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) % alignof(Word) == 0;
}

// Copies up to 8 bytes: at once if they are a word, else their last byte after the others.
void place_last(std::uint8_t* to, std::span<const std::uint8_t> from) noexcept {
    if (from.size() == sizeof(std::uint64_t) && is_aligned<std::uint64_t>(to)) {
        store_last<std::uint64_t>(to, from.data());
    } else if (from.size() == sizeof(std::uint32_t) && is_aligned<std::uint32_t>(to)) {
        store_last<std::uint32_t>(to, from.data());
    } else if (!from.empty()) {
        copy_bytes(to, from.data(), from.size() - 1);
        store_last<std::uint8_t>(to + from.size() - 1, &from.back());
    }
}

}  // namespace

// find() is expanded in place, since its two callers would otherwise make it a call.
[[gnu::flatten]] bool find_pieces(const MemoryAccess& access, std::span<const Sge> sges, std::uint64_t offset,
                                  std::uint64_t bytes, Pieces& out) noexcept {
    if (sges.size() == 1 && offset == 0 && bytes == sges[0].bytes && bytes != 0) [[likely]] {
        const MemoryView view =
            access.memory.find(Rkey{sges[0].lkey.value}, access.pd, access.wanted, sges[0].address, bytes);
        out.at[0] = {view.data, static_cast<std::size_t>(bytes)};
        out.count = 1;
        out.sendable = view.sendable;
        return !view.refusal;
    }
    out.count = 0;
    out.sendable = true;
    for (const Sge& sge : sges) {
        if (bytes == 0) {
            break;
        }
        if (offset >= sge.bytes) {
            offset -= sge.bytes;
            continue;
        }
        const std::uint64_t here = std::min<std::uint64_t>(bytes, sge.bytes - offset);
        if (sge.address > ~std::uint64_t{0} - offset) {
            return false;
        }
        const MemoryView view =
            access.memory.find(Rkey{sge.lkey.value}, access.pd, access.wanted, sge.address + offset, here);
        if (view.refusal) {
            return false;
        }
        out.at[out.count++] = {view.data, static_cast<std::size_t>(here)};
        out.sendable = out.sendable && view.sendable;
        offset = 0;
        bytes -= here;
    }
    return bytes == 0;
}

bool place(std::uint8_t* to, std::span<const std::uint8_t> from) noexcept {
    return UserMemory::run([to, from]() noexcept {
        constexpr std::size_t kWord = sizeof(std::uint64_t);
        const std::size_t before = from.empty() ? 0 : (from.size() - 1) / kWord * kWord;
        copy_bytes(to, from.data(), before);
        place_last(to + before, from.subspan(before));
    });
}

bool place(const Pieces& to, std::span<const std::uint8_t> from) noexcept {
    for (const std::span<std::uint8_t> piece : to.all()) {
        if (!place(piece.data(), from.first(piece.size()))) {
            return false;
        }
        from = from.subspan(piece.size());
    }
    CAIRN_ASSERT(from.empty());
    return true;
}

bool gather(const Pieces& from, std::uint8_t* to) noexcept {
    return UserMemory::run([&from, to]() noexcept {
        std::uint8_t* at = to;
        for (const std::span<std::uint8_t> piece : from.all()) {
            copy_bytes(at, piece.data(), piece.size());
            at += piece.size();
        }
    });
}

}  // namespace cairn::roce
