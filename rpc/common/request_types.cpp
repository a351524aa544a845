#include "rpc/common/request_types.hpp"

#include <fmt/format.h>

namespace cairn::rpc {

// mutants: rpc-answer-limit-judge
Status AnswerLimit::judge(std::uint8_t type, std::uint32_t response_bytes_max) const {
    if (response_bytes_max > bytes) {
        return Error{fmt::format("answers of {} bytes to requests of type {} are longer than the {} that the endpoint "
                                 "sends",
                                 response_bytes_max, type, bytes),
                     fmt::format("register {} or less, or {}", bytes, remedy)};
    }
    return Nothing{};
}

}  // namespace cairn::rpc
