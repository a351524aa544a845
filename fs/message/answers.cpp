#include "fs/message/answers.hpp"

#include "lib/base/assert.hpp"

namespace cairn::fs {

std::uint32_t put_error(std::span<std::uint8_t> room, const AnswerHead& head) {
    CAIRN_ASSERT(head.error != 0);
    FieldWriter out(room);
    AnswerHead::fields(out, head);
    return out.bytes();
}

ListWriter::ListWriter(std::span<std::uint8_t> room, const AnswerHead& head) : room_(room), head_(head) {
    bytes_ = put_answer(room_, head_, ListAnswer{});
    CAIRN_ASSERT(bytes_ != 0);
}

bool ListWriter::add(const ListedName& name) {
    FieldWriter out(room_.subspan(bytes_));
    ListedName::fields(out, name);
    if (out.failed()) {
        return false;
    }
    bytes_ += out.bytes();
    ++count_;
    return true;
}

std::uint32_t ListWriter::finish(bool is_end) {
    const std::uint32_t head_bytes = put_answer(room_, head_, ListAnswer{count_, is_end});
    CAIRN_ASSERT(head_bytes != 0);
    return bytes_;
}

ListReader::ListReader(std::span<const std::uint8_t> bytes) : in_(bytes) {
    AnswerHead head;
    AnswerHead::fields(in_, head);
    if (head.error == 0) {
        ListAnswer::fields(in_, facts_);
    }
    if (!in_.failed()) {
        head_ = head;
        left_ = facts_.count;
    }
}

std::optional<ListedName> ListReader::next() {
    if (left_ == 0) {
        return std::nullopt;
    }
    ListedName name;
    ListedName::fields(in_, name);
    if (in_.failed()) {
        return std::nullopt;
    }
    --left_;
    return name;
}

}  // namespace cairn::fs
