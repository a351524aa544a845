// A line on its way to a medium.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "fs/medium/medium.hpp"

namespace cairn::fs {

// A line's content when it was flushed, or the part of it that was copied.
class RecordedLine {
public:
    RecordedLine(std::span<const std::uint8_t> memory, std::size_t begin, std::size_t end) noexcept
        : line_(begin / fs::kLineBytes * fs::kLineBytes),
          begin_(static_cast<std::uint8_t>(begin - line_)),
          end_(static_cast<std::uint8_t>(end - line_)) {
        std::memcpy(content_.data() + begin_, memory.data() + begin, end - begin);
    }
    [[nodiscard]] std::size_t offset() const noexcept { return line_ + begin_; }
    [[nodiscard]] std::size_t count() const noexcept { return std::size_t{end_} - begin_; }
    [[nodiscard]] const std::uint8_t* bytes() const noexcept { return content_.data() + begin_; }
    // Returns the part of its bytes in one word of the line: the offset in the memory, and the number of bytes.
    [[nodiscard]] std::pair<std::size_t, std::size_t> within(std::size_t word) const noexcept {
        const std::size_t first = std::max<std::size_t>(begin_, word);
        const std::size_t last = std::min<std::size_t>(end_, word + fs::kWordBytes);
        return {line_ + first, last > first ? last - first : 0};
    }

private:
    std::size_t line_;
    std::uint8_t begin_;
    std::uint8_t end_;
    std::array<std::uint8_t, fs::kLineBytes> content_{};
};

}  // namespace cairn::fs
