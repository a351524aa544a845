// A process at a daemon's socket that sends arbitrary messages, without the client library.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fs/channel/client_end.hpp"
#include "fs/message/hello.hpp"
#include "lib/base/owned_fd.hpp"

namespace cairn::hostile {

constexpr fs::FileId kRoot{1, 1};

struct FsOptions {
    std::string socket{};
    std::string attack{};
    double seconds = 1;
    std::uint64_t seed = 1;
    fs::FileId victim{};  // a file that is none of the attacker's
};

struct FsTally {
    std::uint64_t connections = 0;
    std::uint64_t channels = 0;
    std::uint64_t calls = 0;
    std::uint64_t answers = 0;   // calls without an error
    std::uint64_t refusals = 0;  // errors that the daemon reported
    std::uint64_t hung_up = 0;   // connections closed without a message
    std::uint64_t leaks = 0;     // answers that grant others' data, or impossible ones
    std::string last_refusal{};
};

// The means of an attack.
struct FsAttacker {
    explicit FsAttacker(const FsOptions& given);
    [[nodiscard]] bool is_over() const noexcept { return std::chrono::steady_clock::now() >= until; }
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept { return chance() % bound; }

    const FsOptions options;
    const std::chrono::steady_clock::time_point until;
    std::mt19937_64 chance;
    FsTally tally{};
};

struct FsChannel {
    fs::Segment segment;
    OwnedFd bell;
};

// A connection to the daemon.
class FsGuest {
public:
    // Connects; sends nothing yet.
    explicit FsGuest(FsAttacker& attacker);

    [[nodiscard]] bool is_connected() const noexcept { return socket_.is_open(); }
    // Sends bytes as they are, and descriptors with them. Returns false if they were not sent.
    bool send(std::span<const std::uint8_t> bytes, std::span<const int> fds = {}) noexcept;
    // Sends Hello as a client does. Returns false if the daemon refuses it.
    [[nodiscard]] bool meet(std::uint64_t number = 0);
    // Asks for a channel as a client does. Returns nullopt if there is none.
    [[nodiscard]] std::optional<FsChannel> channel(std::uint16_t shard);
    [[nodiscard]] const fs::Welcome& welcome() const noexcept { return welcome_; }
    [[nodiscard]] bool has_news() const noexcept;
    void leave() { socket_ = OwnedFd(); }
    [[nodiscard]] int fd() const noexcept { return socket_.get(); }

private:
    struct Reply {
        std::vector<std::uint8_t> bytes{};
        std::vector<OwnedFd> fds{};
    };
    [[nodiscard]] Reply read();
    void note_end(const Reply& reply);

    FsAttacker& attacker_;
    OwnedFd socket_;
    fs::Welcome welcome_{};
};

struct FsAttack {
    const char* name;
    void (*run)(FsAttacker&);
    const char* what;  // for --help
};

[[nodiscard]] std::span<const FsAttack> attacks_on_socket();
[[nodiscard]] std::span<const FsAttack> attacks_on_segment();
[[nodiscard]] std::span<const FsAttack> attacks_on_shards();

}  // namespace cairn::hostile
