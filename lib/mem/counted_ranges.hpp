// CountedRanges: the memory ranges that are made known to a device. Ranges may overlap and come more than once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace cairn::mem {

// Ranges are made known in pieces of whole pages. Pieces can neither be cut nor overlap: attaching a range makes pieces
// of its pages that lie in none yet. A piece ends when the last range that touches it is released.
// A piece may outlive the ranges that contain all of it. Its pages may then have become other memory. Until that piece
// has ended, nothing is attached there, and nothing there is covered.
// Lookups allocate nothing. One thread uses the object, or the callers hold a lock.
class CountedRanges {
public:
    using Range = std::span<const std::uint8_t>;
    static constexpr std::size_t kPageBytes = 4096;

    // Makes pieces known to the device, and ends them. Outlives the ranges.
    class Keeper {
    public:
        virtual ~Keeper() = default;
        // Returns false if the piece cannot be made known.
        [[nodiscard]] virtual bool make(Range piece) = 0;
        virtual void end(Range piece) noexcept = 0;
    };

    explicit CountedRanges(Keeper& keeper) noexcept : keeper_(keeper) {}
    CountedRanges(const CountedRanges&) = delete;
    CountedRanges& operator=(const CountedRanges&) = delete;
    ~CountedRanges();  // ends all pieces

    // Attaches the range, or returns false and changes nothing. Reasons: it is empty, the keeper cannot make it known,
    // or parts of it lie in a piece whose pages may have changed.
    [[nodiscard]] bool attach(Range range);
    // Lets the range become other memory from now on. Its pieces stay until release_retired(). Returns false if the
    // range is not attached.
    bool retire(Range range) noexcept;
    void release_retired() noexcept;
    // Returns true if all of the range is known, as the memory that it is now.
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
        std::uint32_t users = 0;   // attached or retired ranges that touch it
        std::uint32_t owners = 0;  // attached ranges that contain all of it; 0: its pages may have changed
    };

    [[nodiscard]] static Pages pages_of(Range range) noexcept;
    [[nodiscard]] std::vector<Piece>::iterator first_behind(std::uintptr_t address) noexcept;
    [[nodiscard]] std::span<Piece> touched_by(const Pages& pages) noexcept;
    [[nodiscard]] std::vector<Pages> missing_in(const Pages& wanted);
    [[nodiscard]] bool make(std::span<const Pages> missing);

    Keeper& keeper_;
    std::vector<Piece> pieces_;  // sorted by address
    std::multiset<Pages> live_;
    std::vector<Pages> retired_;  // has room for all live ranges
};

}  // namespace cairn::mem
