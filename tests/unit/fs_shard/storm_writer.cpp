#include "tests/unit/fs_shard/storm_writer.hpp"

namespace cairn::fs {

void StormWriter::step() {
    if (token_ != 0 && cluster_.is_answered(token_)) {
        const std::vector<std::uint8_t> bytes = cluster_.take_answer(token_);
        token_ = 0;
        take(bytes);
    }
    if (reopen() && token_ == 0 && (stops || random_.below(3) == 0)) {
        begin();
    }
}

// Opens the file again. Returns whether the file is still open at its home.
bool StormWriter::reopen() {
    if (reopen_token_ != 0 && cluster_.is_answered(reopen_token_)) {
        OpenAnswer answer;
        const std::int32_t error = error_of(cluster_.take_answer(reopen_token_), answer);
        reopen_token_ = 0;
        EXPECT_TRUE(error == 0 || error == ETIMEDOUT) << error;
        needs_reopen_ = error != 0;
    }
    if (needs_reopen_ && reopen_token_ == 0) {
        const OpenRequest open{file_, kMayRead | kMayWrite};
        reopen_token_ = cluster_.send_as(client_, home(), open, 1, ++client_.sequence);
    }
    return !needs_reopen_;
}

void StormWriter::resend(ShardNumber shard) {
    if (is_open_ && home() == shard) {
        needs_reopen_ = true;
        reopen_token_ = 0;
        (void)reopen();
    }
    if (token_ != 0 && to_ == shard && !cluster_.is_answered(token_)) {
        token_ = cluster_.send_as(client_, to_, request_, 0, client_.sequence);
    }
}

void StormWriter::send(ShardNumber to, const Request& request) {
    to_ = to;
    request_ = request;
    token_ = cluster_.send_as(client_, to, request_, 0, ++client_.sequence);
}

void StormWriter::begin() {
    if (!is_open_) {
        if (!stops) {
            name_ = "n" + std::to_string(random_.below(6));
            send(cluster_.owner_of_name(kRoot, name_),
                 CreateRequest{kRoot, S_IFREG | 0666U, kMayRead | kMayWrite, true, name_, {}});
        }
        return;
    }
    if (stops) {
        return read_ == kChunks ? send(home(), CloseRequest{file_}) : begin_read(read_++);
    }
    const std::uint64_t what = random_.below(32);
    if (what < 16) {
        begin_write();
    } else if (what < 22) {
        SetAttributesRequest cut{file_, grant(), kSetSize};
        cut.size = random_.below(kChunks) * kChunk + random_.below(kUsed);
        send(home(), cut);
    } else if (what < 30) {
        begin_read(static_cast<std::uint32_t>(random_.below(kChunks)));
    } else if (what == 30) {
        send(home(), CloseRequest{file_});
    } else {
        die();
    }
}

void StormWriter::begin_read(std::uint32_t chunk) {
    send(cluster_.owner_of_chunk(file_, chunk), ReadRequest{file_, grant(), chunk * kChunk, kUsed, kReadAt});
}

void StormWriter::begin_write() {
    const auto chunk = static_cast<std::uint32_t>(random_.below(kChunks));
    const std::uint64_t at = random_.below(kUsed);
    const auto bytes = static_cast<std::uint32_t>(1 + random_.below(kUsed - at));
    std::fill_n(client_.data.begin(), bytes, static_cast<std::uint8_t>(1 + random_.below(255)));
    write_ = {file_, grant(), chunk * kChunk + at, generation_, bytes, 0};
    send(cluster_.owner_of_chunk(file_, chunk), write_);
}

void StormWriter::die() {
    cluster_.forget(client_);
    client_.number += kNewNumber;
    is_open_ = false;
    ++deaths;
}

void StormWriter::take(const std::vector<std::uint8_t>& bytes) {
    const Request request = request_;
    std::visit(
        [&](const auto& asked) {
            if constexpr (requires { took(asked, bytes); }) {
                took(asked, bytes);
            }
        },
        request);
}

void StormWriter::took(const CreateRequest& /*request*/, const std::vector<std::uint8_t>& bytes) {
    WalkAnswer answer;
    const std::int32_t error = error_of(bytes, answer);
    EXPECT_TRUE(error == 0 || error == EEXIST || error == ENOENT || error == ETIMEDOUT || error == EIO) << error;
    if (error == 0 && answer.is_opened) {
        is_open_ = true;
        file_ = answer.attributes.id;
        proof_ = answer.proof;
        generation_ = answer.attributes.generation;
        size_ = answer.attributes.size;
        EXPECT_EQ(size_, 0U);
        bytes_ = {};
    }
}

void StormWriter::wrote() {
    const std::uint64_t chunk = write_.offset / kChunk;
    std::copy_n(client_.data.begin(), write_.bytes, bytes_[chunk].begin() + static_cast<int>(write_.offset % kChunk));
    size_ = std::max(size_, write_.offset + write_.bytes);
}

// A write that was made again after its file was cut has an earlier generation; only this client cuts.
void StormWriter::took(const WriteRequest& /*request*/, const std::vector<std::uint8_t>& bytes) {
    DataAnswer answer;
    ASSERT_EQ(error_of(bytes, answer), 0);
    if (answer.is_home) {
        wrote();
        EXPECT_EQ(answer.size, size_);
    } else {
        send(home(), ExtendRequest{file_, grant(), write_.offset + write_.bytes, generation_});
    }
}

void StormWriter::took(const ExtendRequest& /*request*/, const std::vector<std::uint8_t>& bytes) {
    DataAnswer answer;
    const std::int32_t error = error_of(bytes, answer);
    if (error == ETIMEDOUT) {
        return send(to_, request_);
    }
    ASSERT_EQ(error, 0);
    wrote();
    EXPECT_EQ(answer.size, size_);
}

void StormWriter::set_size(std::uint64_t size) {
    for (std::uint32_t chunk = 0; chunk != kChunks; ++chunk) {
        const std::uint64_t begin = chunk * kChunk;
        const std::uint64_t left = size > begin ? std::min<std::uint64_t>(size - begin, kUsed) : 0;
        std::fill(bytes_[chunk].begin() + static_cast<int>(left), bytes_[chunk].end(), std::uint8_t{0});
    }
    size_ = size;
}

// A cut that failed may go on, so it is repeated until it succeeds.
void StormWriter::took(const SetAttributesRequest& request, const std::vector<std::uint8_t>& bytes) {
    AttributesAnswer answer;
    const std::int32_t error = error_of(bytes, answer);
    if (error == EIO || error == ETIMEDOUT) {
        return send(to_, request_);
    }
    ASSERT_EQ(error, 0);
    EXPECT_EQ(answer.attributes.size, request.size);
    EXPECT_GE(answer.attributes.generation, generation_);
    generation_ = answer.attributes.generation;
    set_size(request.size);
    ++cuts;
}

void StormWriter::took(const ReadRequest& request, const std::vector<std::uint8_t>& bytes) {
    DataAnswer answer;
    const std::int32_t error = error_of(bytes, answer);
    if (error == ETIMEDOUT) {
        return send(to_, request_);
    }
    ASSERT_EQ(error, 0);
    const std::uint64_t left = size_ > request.offset ? std::min<std::uint64_t>(size_ - request.offset, kUsed) : 0;
    if (answer.is_home) {
        EXPECT_EQ(answer.size, size_);
        EXPECT_EQ(answer.bytes, left);
    }
    const auto& wanted = bytes_[request.offset / kChunk];
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.begin() + static_cast<int>(left), client_.data.begin() + kReadAt))
        << "chunk " << request.offset / kChunk;
    ++reads;
}

void StormWriter::took(const CloseRequest& /*request*/, const std::vector<std::uint8_t>& bytes) {
    EmptyAnswer answer;
    const std::int32_t error = error_of(bytes, answer);
    EXPECT_TRUE(error == 0 || error == EBADF) << error;  // EBADF: it was closed before a restart
    is_open_ = false;
}

}  // namespace cairn::fs
