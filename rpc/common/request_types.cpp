#include "rpc/common/request_types.hpp"

#include <fmt/format.h>

namespace cairn::rpc {

Status AnswerLimit::judge(std::uint8_t type, std::uint32_t response_bytes_max) const {
    if (response_bytes_max > bytes) {
        return Error{fmt::format("answers of {} bytes to requests of type {} are longer than the {} that the endpoint "
                                 "sends",
                                 response_bytes_max, type, bytes),
                     fmt::format("register {} or less, or {}", bytes, remedy)};
    }
    return Nothing{};
}

Error no_threads_for(std::uint8_t type) {
    return {fmt::format("no thread executes the background handler of type {}", type),
            "give the endpoint's configuration a BackgroundPool, or set a handler that the worker executes"};
}

}  // namespace cairn::rpc
