// Request types that take longer than a slice (ScaleRPC 3.5): from the second time on a thread executes them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "rpc/common/request_types.hpp"

namespace cairn::scalerpc {

// `Entry` is a request type's handler and room.
template <class Entry>
class Legacy {
public:
    void set(std::uint8_t type, rpc::BackgroundHandler handler, void* context,
             std::uint32_t response_bytes_max) noexcept {
        entries_[type] = {nullptr, handler, context, response_bytes_max};
        given_[type] = handler != nullptr;
    }
    // A request of the type took longer than a slice.
    void on_long(std::uint8_t type) noexcept { long_[type] = given_[type]; }
    // True if the type's handlers are to be watched: none has taken too long yet, and there is another one.
    [[nodiscard]] bool watches(std::uint8_t type) const noexcept { return given_[type] && !long_[type]; }
    // Returns the handler that executes the type: `usual`, unless it has taken too long.
    [[nodiscard]] const Entry& of(std::uint8_t type, const Entry& usual) const noexcept {
        return long_[type] ? entries_[type] : usual;
    }

private:
    std::array<Entry, rpc::kRequestTypes> entries_{};
    std::bitset<rpc::kRequestTypes> given_{};
    std::bitset<rpc::kRequestTypes> long_{};
};

}  // namespace cairn::scalerpc
