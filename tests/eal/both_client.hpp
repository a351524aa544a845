// A client that makes calls over a session while it WRITEs to the server's memory and READs it back. It verifies each
// byte.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tests/eal/both_side.hpp"

namespace cairn::both {

class Client final : public Side {
public:
    Client(std::unique_ptr<port::Port> port, std::shared_ptr<connections::Agent> agent, std::uint16_t number,
           std::uint64_t seed);
    // Asks the server at once for the service and for a connection to the port of the same number.
    Status begin(const net::IpAddress& server, std::uint16_t service, Instant now);
    [[nodiscard]] std::uint64_t calls() const noexcept override { return calls_; }
    [[nodiscard]] std::uint64_t rounds() const noexcept override { return rounds_; }

private:
    static constexpr std::size_t kCallsUnderWay = 4;

    // A call, or room for one.
    struct OneCall {
        Client* client = nullptr;
        std::vector<std::uint8_t> request{};
        bool posted = false;
    };

    bool step(Instant now) noexcept override;
    bool hear_directory(Instant now);
    bool hear_connector();
    bool take_completions();
    void work(Instant now);
    void leave(Instant now);
    void post_call(OneCall& each, Instant now);
    void on_answer(OneCall& each, const erpc::CallResult& result);
    void post_round();
    void finish_round();
    // The memory that a WRITE sends, and the memory that a READ fills.
    [[nodiscard]] std::span<std::uint8_t> source() noexcept;
    [[nodiscard]] std::span<std::uint8_t> landing() noexcept;

    net::IpAddress server_{};
    Instant give_up_at_{};
    verbs::ConnectionId connection_{};
    std::optional<SessionId> session_;
    std::optional<RawOffer> offer_;
    std::array<OneCall, kCallsUnderWay> under_way_{};
    std::uint64_t next_call_ = 0;
    std::uint64_t calls_ = 0;
    std::uint64_t rounds_ = 0;
    std::uint32_t round_bytes_ = 1;
    bool round_posted_ = false;
    bool leaving_ = false;
    bool disconnected_ = false;
};

}  // namespace cairn::both
