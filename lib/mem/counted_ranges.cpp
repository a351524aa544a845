#include "lib/mem/counted_ranges.hpp"

#include <algorithm>
#include <limits>

namespace cairn::mem {

CountedRanges::Range CountedRanges::Pages::range() const noexcept {
    return {reinterpret_cast<const std::uint8_t*>(begin), end - begin};  // NOLINT(performance-no-int-to-ptr)
}

// Returns no pages for an empty range, and for a range whose last page would end after the last address.
CountedRanges::Pages CountedRanges::pages_of(Range range) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
    const std::uintptr_t above = std::numeric_limits<std::uintptr_t>::max() - begin;
    if (range.empty() || above < kPageBytes || range.size() > above - kPageBytes) {
        return {};
    }
    return {begin / kPageBytes * kPageBytes, (begin + range.size() + kPageBytes - 1) / kPageBytes * kPageBytes};
}

std::vector<CountedRanges::Piece>::iterator CountedRanges::first_behind(std::uintptr_t address) noexcept {
    return std::partition_point(pieces_.begin(), pieces_.end(),
                                [address](const Piece& piece) { return piece.pages.end <= address; });
}

std::span<CountedRanges::Piece> CountedRanges::touched_by(const Pages& pages) noexcept {
    const auto first = first_behind(pages.begin);
    const auto last =
        std::find_if(first, pieces_.end(), [&pages](const Piece& piece) { return piece.pages.begin >= pages.end; });
    return {first, last};
}

std::vector<CountedRanges::Pages> CountedRanges::missing_in(const Pages& wanted) {
    const std::span<const Piece> there = touched_by(wanted);
    std::vector<Pages> missing;
    missing.reserve(there.size() + 1);
    Pages gap = wanted;
    for (const Piece& piece : there) {
        gap.end = piece.pages.begin;
        if (gap.begin < gap.end) {
            missing.push_back(gap);
        }
        gap.begin = piece.pages.end;
    }
    gap.end = wanted.end;
    if (gap.begin < gap.end) {
        missing.push_back(gap);
    }
    return missing;
}

// Makes all missing pieces known, or none.
bool CountedRanges::make(std::span<const Pages> missing) {
    for (std::size_t made = 0; made < missing.size(); ++made) {
        if (!keeper_.make(missing[made].range())) {
            for (const Pages& each : missing.first(made)) {
                keeper_.end(each.range());
            }
            return false;
        }
    }
    for (const Pages& each : missing) {
        pieces_.insert(first_behind(each.begin), {each});
    }
    return true;
}

bool CountedRanges::attach(Range range) {
    const Pages wanted = pages_of(range);
    const std::span<const Piece> there = touched_by(wanted);
    const bool may_have_changed =
        std::any_of(there.begin(), there.end(), [](const Piece& piece) { return piece.owners == 0; });
    if (wanted.begin == wanted.end || may_have_changed || !make(missing_in(wanted))) {
        return false;
    }
    for (Piece& piece : touched_by(wanted)) {
        ++piece.users;
        piece.owners += wanted.contains(piece.pages) ? 1U : 0U;
    }
    live_.insert(wanted);
    retired_.reserve(live_.size() + retired_.size());
    return true;
}

bool CountedRanges::retire(Range range) noexcept {
    const Pages pages = pages_of(range);
    const auto found = live_.find(pages);
    if (found == live_.end()) {
        return false;
    }
    live_.erase(found);
    retired_.push_back(pages);
    for (Piece& piece : touched_by(pages)) {
        piece.owners -= pages.contains(piece.pages) ? 1U : 0U;
    }
    return true;
}

void CountedRanges::release_retired() noexcept {
    for (const Pages& pages : retired_) {
        for (Piece& piece : touched_by(pages)) {
            if (--piece.users == 0) {
                keeper_.end(piece.pages.range());
            }
        }
        std::erase_if(pieces_, [](const Piece& piece) { return piece.users == 0; });
    }
    retired_.clear();
}

bool CountedRanges::covers(Range range) const noexcept {
    const Pages wanted = pages_of(range);
    auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                      [&wanted](const Piece& each) { return each.pages.end <= wanted.begin; });
    std::uintptr_t at = wanted.begin;
    for (; at < wanted.end && piece != pieces_.end() && piece->pages.begin <= at && piece->owners != 0; ++piece) {
        at = piece->pages.end;
    }
    return wanted.begin != wanted.end && at >= wanted.end;
}

CountedRanges::~CountedRanges() {
    for (const Piece& piece : pieces_) {
        keeper_.end(piece.pages.range());
    }
}

}  // namespace cairn::mem
