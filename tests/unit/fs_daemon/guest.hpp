// A daemon's client, as bytes and descriptors; and a folder that is deleted after its test.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fs/message/hello.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/base/passed_fds.hpp"

namespace cairn::fs::test {

class Folder {
public:
    Folder() {
        std::string name = testing::TempDir() + "fsd-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

struct Reply {
    std::vector<std::uint8_t> bytes{};
    std::vector<OwnedFd> fds{};
};

class Guest {
public:
    explicit Guest(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        is_connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    }
    [[nodiscard]] bool is_connected() const noexcept { return is_connected_; }
    void send(const std::vector<std::uint8_t>& bytes) const {
        ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    }
    // Sends bytes with a descriptor. Returns false if the kernel refuses it.
    [[nodiscard]] bool send_with_descriptor(const std::vector<std::uint8_t>& bytes, int fd) const {
        return send_with_fds<1>(socket_.get(), bytes, {&fd, 1}, MSG_NOSIGNAL) >= 0;
    }
    template <class Message>
    void say(const Message& message) const {
        send(bytes_of(message));
    }
    void leave() { socket_ = OwnedFd(); }

    // Returns true if there is something to read, or the daemon has closed the connection.
    [[nodiscard]] bool has_news() const {
        pollfd one{socket_.get(), POLLIN, 0};
        return ::poll(&one, 1, 0) == 1;
    }
    // Returns the next message; no bytes if the daemon has closed the connection.
    [[nodiscard]] Reply read() const {
        Reply reply;
        reply.bytes.resize(kMostHelloBytes);
        iovec part{reply.bytes.data(), reply.bytes.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        reply.bytes.resize(static_cast<std::size_t>(bytes > 0 ? bytes : 0));
        if (const cmsghdr* const head = CMSG_FIRSTHDR(&message); head != nullptr) {
            for (std::size_t at = 0; at + CMSG_LEN(0) < head->cmsg_len; at += sizeof(int)) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(head) + at, sizeof(fd));
                reply.fds.emplace_back(fd);
            }
        }
        return reply;
    }

private:
    OwnedFd socket_;
    bool is_connected_ = false;
};

}  // namespace cairn::fs::test
