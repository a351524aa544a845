#include "fs/message/census.hpp"

#include "lib/base/assert.hpp"

namespace cairn::fs {

CensusWriter::CensusWriter(std::span<std::uint8_t> room, const AnswerHead& head) : room_(room), head_(head) {
    bytes_ = put_answer(room_, head_, CensusAnswer{});
    CAIRN_ASSERT(bytes_ != 0);
}

std::uint32_t CensusWriter::finish(CensusAnswer answer) {
    answer.count = count_;
    const std::uint32_t head_bytes = put_answer(room_, head_, answer);
    CAIRN_ASSERT(head_bytes != 0);
    return bytes_;
}

CensusReader::CensusReader(std::span<const std::uint8_t> bytes) : in_(bytes) {
    AnswerHead head;
    AnswerHead::fields(in_, head);
    if (head.error == 0) {
        CensusAnswer::fields(in_, facts_);
    }
    if (!in_.failed()) {
        head_ = head;
        left_ = facts_.count;
    }
}

}  // namespace cairn::fs
