#include "fs/client/operations.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "fs/client/asking.hpp"
#include "fs/rules/access.hpp"
#include "fs/rules/ranges.hpp"

namespace cairn::fs {

// The way in which a read learns where the file ends.
enum class SizeFrom : std::uint8_t {
    Pieces,  // one of them goes to the home
    Beside,  // the home is asked at the same time
    Before,  // the read may reach beyond the end, so the size is asked for first
};

namespace {

constexpr int kMostTries = 16;  // while others cut the file again and again

void learn(File& file, std::uint64_t size, std::uint64_t generation) noexcept {
    file.size.store(size, std::memory_order_relaxed);
    file.generation.store(generation, std::memory_order_relaxed);
}

Task<Outcome<Attributes>> learn_from_home(ClientThread& thread, File& file) {
    const Outcome<Attributes> attributes = co_await stat_file(thread, file.id);
    if (attributes.ok()) {
        learn(file, attributes.value.size, attributes.value.generation);
    }
    co_return attributes;
}

// True if a chunk of the range lies at the file's home. The home says the size together with the bytes.
bool touches_home(const View& view, const File& file, std::uint64_t offset, std::uint64_t bytes) noexcept {
    const ShardNumber home = view.owner(file.id.home_slot());
    const std::uint32_t first = view.chunk_of(offset);
    const std::uint32_t last = view.chunk_of(offset + bytes - 1);
    for (std::uint32_t chunk = first; chunk - first < kSlots; ++chunk) {
        if (view.owner(Placement::slot_of_chunk(file.id.home_slot(), chunk)) == home) {
            return true;
        }
        if (chunk == last) {
            break;
        }
    }
    return false;
}

SizeFrom judge_size(const View& view, const File& file, std::uint64_t offset, std::uint64_t bytes) noexcept {
    const bool is_home = touches_home(view, file, offset, bytes);
    if (is_home && bytes <= view.chunk_bytes() - offset % view.chunk_bytes()) {
        return SizeFrom::Pieces;
    }
    if (offset + bytes > file.size.load(std::memory_order_relaxed)) {
        return SizeFrom::Before;
    }
    return is_home ? SizeFrom::Pieces : SizeFrom::Beside;
}

// Returns the part of a read's bytes that lies within the file. A read that did not know the size has asked for nothing
// beyond it.
Outcome<std::uint64_t> end_read(File& file, const Transfer& transfer, std::uint64_t offset) noexcept {
    std::uint64_t bytes = transfer.moved();
    if (transfer.knows_size()) {
        const std::uint64_t size = transfer.size();
        learn(file, size, transfer.generation());
        bytes = std::min(bytes, size > offset ? size - offset : 0);
    }
    if (bytes == 0 && transfer.error() != 0) {
        return Failure{transfer.error() == kErrorOtherGeneration ? EIO : transfer.error()};
    }
    return bytes;
}

// Makes the home's size cover the bytes that were written to other shards.
Task<int> extend(ClientThread& thread, File& file, std::uint64_t end, std::uint64_t generation) {
    const ExtendRequest request{file.id, file.grant(), end, generation};
    const Outcome<DataAnswer> answer = co_await Asking<DataAnswer>(thread.road(), Target::home(file.id), request);
    if (answer.ok()) {
        learn(file, answer.value.size, answer.value.generation);
    }
    co_return answer.error;
}

// Reserves room at the file's end for a write that appends.
Task<Outcome<std::uint64_t>> reserve(ClientThread& thread, File& file, std::uint64_t bytes) {
    const Outcome<DataAnswer> answer =
        co_await Asking<DataAnswer>(thread.road(), Target::home(file.id), ReserveRequest{file.id, file.grant(), bytes});
    if (!answer.ok()) {
        co_return Failure{answer.error};
    }
    learn(file, answer.value.size, answer.value.generation);
    co_return answer.value.offset;
}

// As extend(), but later.
void extend_later(ClientThread& thread, File& file, std::uint64_t end, std::uint64_t generation) {
    thread.late().add({file.id, file.grant(), end, generation, coarse_now()});
    if (end > file.size.load(std::memory_order_relaxed)) {
        file.size.store(end, std::memory_order_relaxed);  // reads up to there ask for it at the same time
    }
}

// Tries to write once. Yields kErrorOtherGeneration if the file was cut meanwhile.
Task<Outcome<std::uint64_t>> write_once(ClientThread& thread, File& file, std::span<const std::uint8_t> from,
                                        std::uint64_t offset) {
    const std::uint64_t generation = file.generation.load(std::memory_order_relaxed);
    Transfer transfer(thread.road(), thread.pieces(), file, {.from = from, .offset = offset, .generation = generation});
    co_await transfer;
    int error = transfer.error();
    if (transfer.knows_size()) {
        file.size.store(transfer.size(), std::memory_order_relaxed);
    }
    if (error != kErrorOtherGeneration && transfer.moved() != 0 && transfer.left_home()) {
        const std::uint64_t end = offset + transfer.moved();
        int extended = 0;
        if (file.is_relaxed) {
            extend_later(thread, file, end, generation);
        } else {
            extended = co_await extend(thread, file, end, generation);
        }
        if (extended != 0) {
            co_return Failure{extended};
        }
    }
    if (error == kErrorOtherGeneration || transfer.moved() == 0) {
        co_return Failure{error};
    }
    co_return transfer.moved();
}

}  // namespace

Task<Outcome<std::uint64_t>> read_file(ClientThread& thread, File& file, std::span<std::uint8_t> to,
                                       std::int64_t offset) {
    const std::uint32_t chunk_bytes = thread.view().chunk_bytes();
    if ((file.rights & kMayRead) == 0) {
        co_return Failure{EBADF};
    }
    if (S_ISDIR(file.mode)) {  // only readdir() reads a directory
        co_return Failure{EISDIR};
    }
    if (const int error = judge_range(offset, to.size(), chunk_bytes, false); error != 0) {
        co_return Failure{error};
    }
    const auto from = static_cast<std::uint64_t>(offset);
    to = to.first(bytes_that_fit(offset, to.size(), chunk_bytes));
    if (to.empty()) {
        co_return std::uint64_t{0};
    }
    if (thread.late().any()) {
        const int error = co_await tell_late(thread, file.id);
        if (error != 0) {
            co_return Failure{error};
        }
    }
    const SizeFrom size_from = judge_size(thread.view(), file, from, to.size());
    if (size_from == SizeFrom::Before) {
        const Outcome<Attributes> home = co_await learn_from_home(thread, file);
        if (!home.ok()) {
            co_return Failure{home.error};
        }
        const std::uint64_t size = home.value.size;
        to = to.first(std::min<std::uint64_t>(to.size(), size > from ? size - from : 0));
        if (to.empty()) {
            co_return std::uint64_t{0};
        }
    }
    Transfer transfer(thread.road(), thread.pieces(), file, {.to = to, .offset = from});
    if (size_from == SizeFrom::Beside) {
        transfer.ask_size();
    }
    co_await transfer;
    co_return end_read(file, transfer, from);
}

Task<Outcome<std::uint64_t>> write_file(ClientThread& thread, File& file, std::span<const std::uint8_t> from,
                                        std::int64_t offset) {
    const std::uint32_t chunk_bytes = thread.view().chunk_bytes();
    if ((file.rights & kMayWrite) == 0) {
        co_return Failure{EBADF};
    }
    if (file.appends && !from.empty()) {
        const Outcome<std::uint64_t> reserved = co_await reserve(thread, file, from.size());
        if (!reserved.ok()) {
            co_return Failure{reserved.error};
        }
        offset = static_cast<std::int64_t>(reserved.value);
    }
    if (const int error = judge_range(offset, from.size(), chunk_bytes, true); error != 0) {
        co_return Failure{error};
    }
    from = from.first(bytes_that_fit(offset, from.size(), chunk_bytes));
    if (from.empty()) {
        co_return std::uint64_t{0};
    }
    for (int tries = 0; tries != kMostTries; ++tries) {
        const Outcome<std::uint64_t> written =
            co_await write_once(thread, file, from, static_cast<std::uint64_t>(offset));
        if (written.error != kErrorOtherGeneration) {
            co_return written;
        }
        const Outcome<Attributes> home = co_await learn_from_home(thread, file);
        if (!home.ok()) {
            co_return Failure{home.error};
        }
    }
    co_return Failure{EIO};
}

}  // namespace cairn::fs
