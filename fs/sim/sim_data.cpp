// A simulated client's data: it opens files, writes them in pieces, and checks them.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "fs/shard/attributes.hpp"
#include "fs/sim/sim_client.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kMostChunk = 12;
constexpr std::uint32_t kMostPiece = 20'000;
constexpr int kMostFailures = 100;

void put_into(std::string& content, std::uint64_t offset, const std::string& bytes) {
    content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()));
    content.replace(offset, bytes.size(), bytes);
}

}  // namespace

Co<SimClient::Opened> SimClient::open(FileId directory, std::string name, std::uint32_t rights) {
    Opened opened;
    Answered answered = co_await ask(cluster_.owner_of_name(directory, name), WalkRequest{directory, rights, name});
    opened.error = answered.error;
    WalkAnswer walked;
    if (answered.error != 0 || !parse_answer(answered.bytes, walked)) {
        co_return opened;
    }
    opened.attributes = walked.attributes;
    opened.grant = {rights, walked.proof};
    if (!walked.is_home) {
        answered = co_await ask(cluster_.home_of(walked.attributes.id),
                                OpenRequest{.file = walked.attributes.id, .rights = rights});
        OpenAnswer answer;
        opened.error = answered.error == ESTALE ? ENOENT : answered.error;
        if (answered.error == 0 && parse_answer(answered.bytes, answer)) {
            opened.attributes = answer.attributes;
            opened.grant.proof = answer.proof;
        }
    }
    co_return opened;
}

Co<int> SimClient::close(FileId file) {
    Answered answered = co_await ask(cluster_.home_of(file), CloseRequest{file});
    co_return answered.error;
}

Co<int> SimClient::write_piece(const Opened& file, std::uint64_t offset, const std::string& bytes) {
    const FileId id = file.attributes.id;
    const auto chunk = static_cast<std::uint32_t>(offset / ShardCluster::kChunkBytes);
    std::ranges::copy(bytes, client_.data.begin());
    const WriteRequest request{
        id, file.grant, offset, file.attributes.generation, static_cast<std::uint32_t>(bytes.size()), 0};
    Answered answered = co_await ask(cluster_.owner_of_chunk(id, chunk), request);
    DataAnswer answer;
    if (answered.error != 0 || !parse_answer(answered.bytes, answer) || answer.is_home) {
        co_return answered.error;
    }
    const ExtendRequest extend{id, file.grant, offset + bytes.size(), file.attributes.generation};
    answered = co_await ask(cluster_.home_of(id), extend);
    // The bytes are written, but the size is not: this part of the write is done.
    co_return answered.error == ENOSPC ? EIO : answered.error;
}

Co<int> SimClient::write(SimTree::Name name) {
    const SimFile* const file = tree_.find(name);
    if (file == nullptr) {
        co_return 0;
    }
    const auto in_chunk = static_cast<std::uint32_t>(random_.below(ShardCluster::kChunkBytes));
    const std::uint64_t offset = (random_.below(kMostChunk) * ShardCluster::kChunkBytes) + in_chunk;
    const auto most = std::min(kMostPiece, ShardCluster::kChunkBytes - in_chunk);
    std::string bytes(random_.between(1, most), static_cast<char>('a' + random_.below(26)));
    SimFile written = *file;
    put_into(written.content, offset, bytes);
    SimTree after = tree_;
    after.change(written.id, written);
    begin(std::move(after), {name});
    const std::uint64_t old_size = file->content.size();
    if (offset < old_size && offset + bytes.size() > old_size) {
        written.content.resize(old_size);
        half_done_ = tree_;
        half_done_->change(written.id, written);
    }
    Opened opened = co_await open(directory_of(name), name.second, kMayRead | kMayWrite);
    if (opened.error != 0) {
        co_return co_await end("open", opened.error, -1, false);
    }
    const int error = co_await write_piece(opened, offset, bytes);
    (void)co_await close(opened.attributes.id);
    co_return co_await end("write", error, 0, true);
}

Co<int> SimClient::truncate(SimTree::Name name) {
    const SimFile* const file = tree_.find(name);
    if (file == nullptr) {
        co_return 0;
    }
    const std::uint64_t size = random_.below(std::uint64_t{kMostChunk} * ShardCluster::kChunkBytes);
    SimFile cut = *file;
    cut.content.resize(size);
    SimTree after = tree_;
    after.change(cut.id, cut);
    begin(std::move(after), {name});
    SetAttributesRequest request{cut.id, {}, kSetSize};
    request.size = size;
    Answered answered = co_await ask(cluster_.home_of(cut.id), request);
    co_return co_await end("truncate", answered.error, 0, size >= file->content.size());
}

// Returns nothing if there is no such file. A file that cannot be read now is read when all is calm.
Co<std::optional<SimFile>> SimClient::look(SimTree::Name name) {
    for (int failures = 0;;) {
        Opened opened = co_await open(directory_of(name), name.second, kMayRead);
        if (opened.error == ENOENT) {
            co_return std::nullopt;
        }
        SimFile found{opened.attributes.id, opened.attributes.links, std::string(opened.attributes.size, '\0')};
        int error = opened.error;
        for (std::uint64_t at = 0; error == 0 && at < found.content.size(); at += ShardCluster::kChunkBytes) {
            const auto bytes = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(ShardCluster::kChunkBytes, found.content.size() - at));
            const auto chunk = static_cast<std::uint32_t>(at / ShardCluster::kChunkBytes);
            Answered answered = co_await ask(cluster_.owner_of_chunk(found.id, chunk),
                                             ReadRequest{found.id, opened.grant, at, bytes, 0});
            error = answered.error;
            found.content.replace(at, bytes, reinterpret_cast<const char*>(client_.data.data()), bytes);
        }
        if (opened.error == 0) {
            (void)co_await close(found.id);
        }
        if (error == 0) {
            ++counts_.looked;
            co_return found;
        }
        if (error != EIO && error != ETIMEDOUT) {
            fault(fmt::format("a look ended with error {}", error));
            co_return std::nullopt;
        }
        co_await Calm{*this};
        if (++failures == kMostFailures) {
            fault(fmt::format("a file cannot be {} though all is calm: error {}", opened.error != 0 ? "opened" : "read",
                              error));
            co_return std::nullopt;
        }
    }
}

}  // namespace cairn::fs
