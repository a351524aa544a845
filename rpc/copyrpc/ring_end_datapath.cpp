// Composes and reads batches.
#include "rpc/copyrpc/ring_end.hpp"

namespace cairn::copyrpc {

namespace {

RingShape shape_of(std::span<const std::uint8_t> ring) noexcept {
    return RingShape(static_cast<std::uint32_t>(ring.size() / kBlockBytes));
}

}  // namespace

RingEnd::RingEnd(std::span<std::uint8_t> own, std::span<std::uint8_t> mirror, std::uint32_t own_receives,
                 std::uint32_t peer_receives, Flow flow)
    : own_(own),
      mirror_(mirror),
      send_(shape_of(mirror), shape_of(own), peer_receives, flow),
      receive_(shape_of(own), own_receives, flow) {}

std::span<std::uint8_t> RingEnd::mirror_at(RingPosition at, std::uint32_t blocks) const noexcept {
    return mirror_.subspan(std::size_t{send_.ring().index_of(at)} * kBlockBytes, std::size_t{blocks} * kBlockBytes);
}

void RingEnd::write(const Message& message, std::uint32_t blocks, RingPosition at) noexcept {
    const std::span<std::uint8_t> payload = message.emit(mirror_at(at, blocks));
    if (!payload.empty()) {
        std::memcpy(payload.data(), message.payload.data(), payload.size());
    }
}

void RingEnd::put_request(Message& request, std::uint32_t answer_bytes) noexcept {
    request.answer = false;
    request.charge = static_cast<std::uint16_t>(Message::charge_for(answer_bytes));
    const std::uint32_t blocks = request.blocks();
    write(request, blocks, send_.take_request(blocks, request.charge));
}

void RingEnd::put_answer(const Message& answer, std::uint32_t charge) noexcept {
    CAIRN_ASSERT(answer.answer);
    const std::uint32_t blocks = answer.blocks();
    write(answer, blocks, send_.take_answer(blocks, charge));
}

bool RingEnd::wants_word(bool waits) const noexcept {
    const std::uint32_t free = send_.ring().blocks() - send_.in_flight();
    return waits || send_.messages() != 0 || (free < send_.ring().blocks() / 4 && sent_since_asked_);
}

BatchHeader RingEnd::header_of(const Batch& batch) noexcept {
    BatchHeader header{next_sent_++, batch.messages, 0, 0, 0};
    if (send_.flow() == Flow::Credit) {
        header.receives = static_cast<std::uint16_t>(receive_.take_receives());
        header.returned = receive_.take_returned();
        header.granted = send_.grant();
    } else {
        const ConsumerWord word = receive_.word();
        header.receives = static_cast<std::uint16_t>(word.batches);
        header.returned = word.blocks;
    }
    return header;
}

// With Flow::Read a header has the fields of its sender's word.
bool RingEnd::learn(const BatchHeader& header) noexcept {
    if (send_.flow() == Flow::Credit) {
        return send_.on_header(header.returned, header.granted, header.receives);
    }
    return send_.on_word({header.returned, send_.batches_of(header.receives)});
}

std::optional<RingWrite> RingEnd::next_write() noexcept {
    const bool may_use_last = receive_.gives_space();
    Batch batch;
    if (send_.has_batch(may_use_last)) {
        batch = send_.take_batch();
    } else if (has_news() && send_.has_room_for_empty() && (may_use_last || send_.receives() > 1)) {
        batch = send_.take_empty();
    } else {
        return std::nullopt;
    }
    const BatchHeader header = header_of(batch);
    sent_since_asked_ = true;
    const std::span<std::uint8_t> room = mirror_at(batch.begin, batch.blocks);
    RawBatchHeader raw;
    header.emit(raw);
    std::memcpy(room.data(), &raw, sizeof(raw));
    return RingWrite{send_.ring().index_of(batch.begin) * kBlockBytes, batch.blocks * kBlockBytes,
                     BatchImmediate{batch.blocks, batch.wraps}.raw(), batch.messages};
}

std::optional<Breach> RingEnd::open(BatchImmediate said) noexcept {
    CAIRN_ASSERT(messages_left_ == 0 && !breach_);
    if (!receive_.on_batch(said)) {
        return breach_ = Breach::BadImmediate;
    }
    RawBatchHeader raw;
    std::memcpy(&raw, own_.data() + std::size_t{receive_.ring().index_of(receive_.next())} * kBlockBytes, sizeof(raw));
    const std::optional<BatchHeader> header = BatchHeader::parse(raw);
    if (!header || header->sequence != next_received_) {
        return breach_ = Breach::BadHeader;
    }
    if (!learn(*header)) {
        return breach_ = Breach::BadCredit;
    }
    ++next_received_;
    messages_left_ = header->messages;
    (void)receive_.read(1, false);
    if (messages_left_ == 0 && receive_.unread() != 0) {
        return breach_ = Breach::BadMessage;
    }
    return std::nullopt;
}

bool RingEnd::fail(Breach breach) noexcept {
    breach_ = breach;
    messages_left_ = 0;
    return false;
}

bool RingEnd::next(Taken& taken) noexcept {
    if (messages_left_ == 0) {
        return false;
    }
    --messages_left_;
    const std::span<const std::uint8_t> room =
        own_.subspan(std::size_t{receive_.ring().index_of(receive_.next())} * kBlockBytes,
                     std::size_t{receive_.unread()} * kBlockBytes);
    Message& message = taken.message;
    if (!message.read(room)) {
        return fail(Breach::BadMessage);
    }
    const std::uint32_t blocks = message.blocks();
    if ((messages_left_ == 0) != (blocks == receive_.unread())) {
        return fail(Breach::BadMessage);
    }
    if (!message.answer && !send_.on_request(message.charge)) {
        return fail(Breach::Overdrawn);
    }
    taken.held = {receive_.read(blocks, !message.answer), blocks};
    return true;
}

}  // namespace cairn::copyrpc
