#include "fs/client/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cairn::fs {

void Piece::fill(std::span<std::uint8_t> data, std::uint32_t at) noexcept {
    transfer->fill(*this, data, at);
}

void Piece::complete(int error, std::span<const std::uint8_t> answer, std::span<const std::uint8_t> data) noexcept {
    transfer->on_piece(*this, error, answer, data);
}

Piece& PiecePool::take() {
    if (free_.empty()) {
        free_.push_back(all_.emplace_back(std::make_unique<Piece>()).get());
    }
    Piece& piece = *free_.back();
    free_.pop_back();
    return piece;
}

Transfer::Transfer(Road& road, PiecePool& pool, const File& file, const TransferBytes& bytes) noexcept
    : road_(road),
      pool_(pool),
      file_(file),
      bytes_(bytes),
      size_ask_(*this, file.id),
      moved_(bytes.size()),
      piece_bytes_(std::min(shared_place() ? kInPlaceBytes : kPieceBytes, road.view().welcome().shape.data_bytes)) {}

std::optional<std::uint32_t> Transfer::shared_place() const noexcept {
    return road_.buffers().place_of(bytes_.memory(), road_.view().meeting());
}

void Transfer::await_suspend(std::coroutine_handle<> waiting) noexcept {
    waiting_ = waiting;
    if (wants_size_) {
        ++under_way_;
        road_.submit(size_ask_);
    }
    go_on();
}

void Transfer::go_on() noexcept {
    while (sent_ != bytes_.size() && moved_ == bytes_.size() && under_way_ < kMostPieces) {
        send_piece();
    }
    if (under_way_ == 0) {
        waiting_.resume();  // destroys self
    }
}

void Transfer::send_piece() noexcept {
    const std::uint64_t offset = bytes_.offset + sent_;
    const std::uint64_t chunk_bytes = road_.view().chunk_bytes();
    const std::uint64_t room = std::min<std::uint64_t>(chunk_bytes - offset % chunk_bytes, piece_bytes_);
    Piece& piece = pool_.take();
    piece.transfer = this;
    piece.done = sent_;
    piece.bytes = static_cast<std::uint32_t>(std::min(room, bytes_.size() - sent_));
    piece.target = Target::slot(Placement::slot_of_chunk(file_.id.home_slot(), road_.view().chunk_of(offset)));
    if (bytes_.is_write()) {
        piece.request = WriteRequest{file_.id, file_.grant(), offset, bytes_.generation, piece.bytes, 0};
    } else {
        piece.request = ReadRequest{file_.id, file_.grant(), offset, piece.bytes, 0};
    }
    sent_ += piece.bytes;
    ++under_way_;
    road_.submit(piece);
}

void Transfer::fill(Piece& piece, std::span<std::uint8_t> data, std::uint32_t at) noexcept {
    const std::optional<std::uint32_t> shared = shared_place();
    piece.is_in_place = shared.has_value();
    if (shared) {
        at = kBuffersAt + *shared + static_cast<std::uint32_t>(piece.done);
    }
    if (!bytes_.is_write()) {
        std::get<ReadRequest>(piece.request).at = at;
        return;
    }
    std::get<WriteRequest>(piece.request).at = at;
    if (!shared) {
        // This is less than the piece if the daemon has come back with smaller slots. The shard then refuses the
        // request.
        std::memcpy(data.data(), bytes_.from.data() + piece.done, std::min<std::size_t>(piece.bytes, data.size()));
    }
}

void Transfer::on_piece(Piece& piece, int error, std::span<const std::uint8_t> bytes,
                        std::span<const std::uint8_t> data) noexcept {
    DataAnswer answer;
    const std::size_t room = piece.is_in_place ? piece.bytes : std::min<std::size_t>(piece.bytes, data.size());
    if (error == 0 && (!parse_answer(bytes, answer) || answer.bytes > room)) {
        error = EIO;
    }
    if (error == 0) {
        take_answer(piece, answer, data);
    } else {
        stop(piece.done, error);
    }
    pool_.give(piece);
    --under_way_;
    go_on();
}

// A chunk at another shard does not know the file's end. The bytes that it lacks are zeros, as far as the file goes.
void Transfer::take_answer(const Piece& piece, const DataAnswer& answer, std::span<const std::uint8_t> data) noexcept {
    if (!bytes_.is_write()) {
        std::uint8_t* const to = bytes_.to.data() + piece.done;
        if (!piece.is_in_place) {
            std::memcpy(to, data.data(), answer.bytes);
        }
        std::memset(to + answer.bytes, 0, answer.is_home ? 0 : piece.bytes - answer.bytes);
    }
    left_home_ = left_home_ || !answer.is_home;
    if (answer.is_home) {
        knows_size_ = true;
        size_ = answer.size;
        generation_ = answer.generation;
    }
    if (answer.bytes != piece.bytes && (answer.is_home || bytes_.is_write())) {
        stop(piece.done + answer.bytes, bytes_.is_write() ? EIO : 0);
    }
}

void Transfer::stop(std::uint64_t at, int error) noexcept {
    if (at < moved_ || (at == moved_ && error_ == 0)) {
        moved_ = at;
        error_ = error;
    }
}

void Transfer::on_size(int error, std::span<const std::uint8_t> bytes) noexcept {
    AttributesAnswer answer;
    if (error == 0 && !parse_answer(bytes, answer)) {
        error = EIO;
    }
    if (error != 0) {
        stop(0, error);
    } else {
        knows_size_ = true;
        size_ = answer.attributes.size;
        generation_ = answer.attributes.generation;
    }
    --under_way_;
    go_on();
}

}  // namespace cairn::fs
