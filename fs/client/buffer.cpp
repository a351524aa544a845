// A program's buffers in the memory that the daemon shares.
#include <utility>

#include "fs/client/cairnfs.hpp"
#include "fs/client/client_threads.hpp"

namespace cairn::fs {

Buffer::Buffer(Client& client, std::size_t bytes) : threads_(client.threads_) {
    std::uint8_t* const taken = threads_->common().connection->take_buffer(bytes);
    bytes_ = {taken, taken == nullptr ? 0 : bytes};
}

Buffer::Buffer(Buffer&& other) noexcept
    : threads_(std::move(other.threads_)), bytes_(std::exchange(other.bytes_, {})) {}

Buffer::~Buffer() {
    if (!bytes_.empty()) {
        threads_->common().connection->buffers().give_back(bytes_.data());
    }
}

void Buffer::give_back(Client& client, const std::uint8_t* buffer) {
    client.threads_->common().connection->buffers().give_back(buffer);
}

std::span<std::uint8_t> Buffer::release() noexcept {
    return std::exchange(bytes_, {});
}

}  // namespace cairn::fs
