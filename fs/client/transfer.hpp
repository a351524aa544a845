// Transfer: moves bytes of a file to or from its chunks, in pieces that are under way together.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fs/client/ask.hpp"
#include "fs/client/open_files.hpp"
#include "fs/client/road.hpp"

namespace cairn::fs {

class Transfer;

// One request of a transfer: bytes of one chunk.
class Piece final : public Ask {
public:
    Piece() noexcept : Ask({}, ReadRequest{}) {}
    void fill(std::span<std::uint8_t> data, std::uint32_t at) noexcept override;
    void complete(int error, std::span<const std::uint8_t> answer,
                  std::span<const std::uint8_t> data) noexcept override;

    Transfer* transfer = nullptr;
    std::uint64_t done = 0;  // bytes of the transfer before this piece
    std::uint32_t bytes = 0;
    bool is_in_place = false;  // the shard reads from the program's buffer, or writes there
};

// A thread's pieces. Their number is the largest that was under way at once.
class PiecePool {
public:
    [[nodiscard]] Piece& take();
    void give(Piece& piece) noexcept { free_.push_back(&piece); }

private:
    std::vector<std::unique_ptr<Piece>> all_;
    std::vector<Piece*> free_;
};

// The bytes that a transfer moves: from `from`, or to `to`.
struct TransferBytes {
    std::span<const std::uint8_t> from{};
    std::span<std::uint8_t> to{};
    std::uint64_t offset = 0;      // in the file
    std::uint64_t generation = 0;  // for a write

    [[nodiscard]] bool is_write() const noexcept { return to.data() == nullptr; }
    [[nodiscard]] std::uint64_t size() const noexcept { return is_write() ? from.size() : to.size(); }
    [[nodiscard]] std::span<const std::uint8_t> memory() const noexcept { return is_write() ? from : to; }
};

// co_await a transfer; afterwards its results are valid. Used once.
class Transfer {
public:
    static constexpr std::uint32_t kPieceBytes = 256U << 10U;  // a shard stores one while the client fills the next
    static constexpr std::uint32_t kInPlaceBytes = 1U << 20U;  // most bytes of a piece that the client does not copy
    static constexpr std::uint32_t kMostPieces = 64;           // most pieces under way

    Transfer(Road& road, PiecePool& pool, const File& file, const TransferBytes& bytes) noexcept;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    // Asks the file's home for its size at the same time. Called before the transfer is awaited.
    void ask_size() noexcept { wants_size_ = true; }

    [[nodiscard]] bool await_ready() const noexcept { return bytes_.size() == 0; }
    void await_suspend(std::coroutine_handle<> waiting) noexcept;
    void await_resume() const noexcept {}

    // Returns how many bytes were moved, from the first one on without a gap.
    [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
    // Returns why no more bytes were moved: 0, an errno or kErrorOtherGeneration.
    [[nodiscard]] int error() const noexcept { return error_; }
    // True if one of the chunks is not at the file's home.
    [[nodiscard]] bool left_home() const noexcept { return left_home_; }
    // True if the home has said the file's size and generation.
    [[nodiscard]] bool knows_size() const noexcept { return knows_size_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

    // Pieces call the functions below.
    void fill(Piece& piece, std::span<std::uint8_t> data, std::uint32_t at) noexcept;
    void on_piece(Piece& piece, int error, std::span<const std::uint8_t> answer,
                  std::span<const std::uint8_t> data) noexcept;

private:
    struct SizeAsk final : Ask {
        SizeAsk(Transfer& of, const FileId& file) noexcept : Ask(Target::home(file), StatRequest{file}), transfer(of) {}
        void complete(int error, std::span<const std::uint8_t> answer,
                      std::span<const std::uint8_t> /*data*/) noexcept override {
            transfer.on_size(error, answer);
        }
        Transfer& transfer;
    };

    // Returns the offset of the bytes in memory that the daemon shares, or nothing if they must be copied.
    [[nodiscard]] std::optional<std::uint32_t> shared_place() const noexcept;
    void go_on() noexcept;
    void send_piece() noexcept;
    void on_size(int error, std::span<const std::uint8_t> answer) noexcept;
    void take_answer(const Piece& piece, const DataAnswer& answer, std::span<const std::uint8_t> data) noexcept;
    void stop(std::uint64_t at, int error) noexcept;

    Road& road_;
    PiecePool& pool_;
    const File& file_;
    TransferBytes bytes_;
    SizeAsk size_ask_;
    std::uint64_t sent_ = 0;  // bytes that pieces cover already
    std::uint64_t moved_;     // the smallest offset at which a piece failed or fell short, or the size
    int error_ = 0;           // the error of the piece at moved_
    std::uint32_t under_way_ = 0;
    std::uint32_t piece_bytes_;
    bool wants_size_ = false;
    bool left_home_ = false;
    bool knows_size_ = false;
    std::uint64_t size_ = 0;
    std::uint64_t generation_ = 0;
    std::coroutine_handle<> waiting_{};
};

}  // namespace cairn::fs
