// CountedRanges: which memory is made known to somebody, where ranges may overlap and come more than once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace cairn::mem {

// Ranges are made known in pieces of whole pages, which can neither be cut nor overlap: a range that is attached makes
// pieces of those of its pages that are in none yet. A piece ends when the last range that touches it is released.
// Where a piece outlives the ranges that covered it, its pages may have become other memory meanwhile: nothing is
// attached there, nor covered, until the piece has ended. Lookups allocate nothing. One thread, or the caller's lock.
class CountedRanges {
public:
    using Range = std::span<const std::uint8_t>;
    static constexpr std::size_t kPageBytes = 4096;

    // To whom the pieces are made known; outlives the ranges.
    class Keeper {
    public:
        virtual ~Keeper() = default;
        // False: it can not be.
        [[nodiscard]] virtual bool make(Range piece) = 0;
        virtual void end(Range piece) noexcept = 0;
    };

    explicit CountedRanges(Keeper& keeper) noexcept : keeper_(keeper) {}
    CountedRanges(const CountedRanges&) = delete;
    CountedRanges& operator=(const CountedRanges&) = delete;
    ~CountedRanges();  // ends all pieces

    // False, and nothing has changed: the range is empty, its keeper can not have it, or parts of it lie in a piece
    // whose pages may have changed.
    [[nodiscard]] bool attach(Range range);
    // The range may become other memory from now on; its pieces stay until release_retired(). False: it is not
    // attached.
    bool retire(Range range) noexcept;
    void release_retired() noexcept;
    // Whether all of the range is known, as the memory that it is now.
    [[nodiscard]] bool covers(Range range) const noexcept;

    [[nodiscard]] std::size_t attached() const noexcept { return live_.size(); }
    [[nodiscard]] std::size_t retired() const noexcept { return retired_.size(); }
    [[nodiscard]] std::size_t pieces() const noexcept { return pieces_.size(); }

private:
    struct Pages {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;

        auto operator<=>(const Pages&) const = default;
        [[nodiscard]] bool contains(const Pages& other) const noexcept {
            return begin <= other.begin && other.end <= end;
        }
        [[nodiscard]] Range range() const noexcept;
    };
    struct Piece {
        Pages pages{};
        std::uint32_t users = 0;   // ranges that touch it, attached or retired
        std::uint32_t owners = 0;  // attached ranges that contain it; 0: its pages may have changed
    };

    [[nodiscard]] static Pages pages_of(Range range) noexcept;
    [[nodiscard]] std::vector<Piece>::iterator first_behind(std::uintptr_t address) noexcept;
    [[nodiscard]] std::span<Piece> touched_by(const Pages& pages) noexcept;
    [[nodiscard]] std::vector<Pages> missing_in(const Pages& wanted);
    [[nodiscard]] bool make(std::span<const Pages> missing);

    Keeper& keeper_;
    std::vector<Piece> pieces_;  // in the order of their addresses
    std::multiset<Pages> live_;
    std::vector<Pages> retired_;  // has room for all that live
};

}  // namespace cairn::mem
