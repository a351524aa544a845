#include "lib/roce/rc/scatter.hpp"

#include <algorithm>
#include <atomic>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"

namespace cairn::roce::rc {

bool find_pieces(const MemoryAccess& access, std::span<const Sge> sges, std::uint64_t offset, std::uint64_t bytes,
                 Pieces& out) noexcept {
    out.count = 0;
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
        if (view.verdict != MemoryVerdict::Ok) {
            return false;
        }
        out.at[out.count++] = {view.data, static_cast<std::size_t>(here)};
        offset = 0;
        bytes -= here;
    }
    return bytes == 0;
}

void place(std::uint8_t* to, std::span<const std::uint8_t> from) noexcept {
    constexpr std::size_t kWord = 8;
    const std::size_t before = from.size() > kWord ? (from.size() - 1) / kWord * kWord : 0;
    copy_bytes(to, from.data(), before);
    // Pairs with the acquire of a reader that polls the last word.
    std::atomic_thread_fence(std::memory_order_release);
    copy_bytes(to + before, from.data() + before, from.size() - before);
}

void place(const Pieces& to, std::span<const std::uint8_t> from) noexcept {
    for (const std::span<std::uint8_t> piece : to.all()) {
        place(piece.data(), from.first(piece.size()));
        from = from.subspan(piece.size());
    }
    CAIRN_ASSERT(from.empty());
}

}  // namespace cairn::roce::rc
