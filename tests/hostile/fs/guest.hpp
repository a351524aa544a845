// A process at a daemon's socket that says what it likes, without the client library.
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
    std::uint64_t answers = 0;   // without an error
    std::uint64_t refusals = 0;  // told by the daemon
    std::uint64_t hung_up = 0;   // without a word
    std::uint64_t leaks = 0;     // answers that grant what is not the attacker's, and what cannot be
    std::string last_refusal{};
};

// What an attack is made with.
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
    // Connects, and says nothing yet.
    explicit FsGuest(FsAttacker& attacker);

    [[nodiscard]] bool is_connected() const noexcept { return socket_.is_open(); }
    // Sends bytes as they are, and descriptors with them. Returns false if they did not go.
    bool send(std::span<const std::uint8_t> bytes, std::span<const int> fds = {}) noexcept;
    // Says Hello as a client does. Returns false if it is not welcome.
    [[nodiscard]] bool meet(std::uint64_t number = 0);
    // Asks for a channel as a client does. Returns nothing if there is none.
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
