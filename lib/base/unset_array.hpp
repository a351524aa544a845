// An array of objects that are written before they are read. Making it does not initialise them, as making a std::array
// would.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace cairn {

template <class T, std::size_t count>
requires std::is_trivially_copyable_v<T>
union UnsetArray {
    UnsetArray() noexcept {}  // NOLINT(modernize-use-equals-default): that one would be deleted

    [[nodiscard]] T* data() noexcept { return all_.data(); }
    [[nodiscard]] const T* data() const noexcept { return all_.data(); }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return all_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return all_[i]; }

private:
    std::array<T, count> all_;
};

}  // namespace cairn
