// Directory: where eRPC services are. A service is named by a port number; whoever has it says by SIDR, over queue pair
// 1, which queue pairs serve it (IBTA vol. 1, 12.11, and annex A11 for services of IP hosts).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "lib/base/result.hpp"
#include "lib/connections/home.hpp"

namespace cairn::erpc {

// What a server tells of itself.
struct ServiceOffer {
    Qpn qpn{};                  // of its first worker; the others' count up from there
    Qkey qkey{};                // of all of them
    std::uint16_t workers = 1;  // [1, 2^15]
};

// How a question ended.
struct ServiceAnswer {
    enum class Outcome : std::uint8_t {
        Found,
        Silent,        // the host answered none of the questions
        NoService,     // there is none of that name
        NotErpc,       // who has it speaks something else
        OtherVersion,  // of eRPC's packets
    };
    Outcome outcome = Outcome::Silent;
    ServiceOffer offer{};  // of a service that was found
};
// For the operator: "no service of that name", ...
[[nodiscard]] const char* text_of(ServiceAnswer::Outcome outcome) noexcept;

// One per process and port, on the worker that gets what is sent to queue pair 1; its thread's. One question at a time.
class Directory final : private cm::User {
public:
    // The home outlives it.
    explicit Directory(connections::Home& home) noexcept : home_(home) {}
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    ~Directory() { home_.leave(*this); }

    // Tells whoever asks, from now on. Errors: the name is taken.
    Status serve(std::uint16_t name, const ServiceOffer& offer);
    // Asks the host; poll_answer() says how it went, after as much silence as the home's configuration allows (about
    // eight seconds with its defaults). A question before that is forgotten. Errors: no host can have the address, or
    // it is of another family than ours.
    Status ask(const net::IpAddress& host, std::uint16_t name, Instant now);
    [[nodiscard]] std::optional<ServiceAnswer> poll_answer() { return std::exchange(answer_, std::nullopt); }

private:
    void on_event(const cm::Event& event, Instant now) override;

    connections::Home& home_;
    std::optional<cm::DatagramId> question_;
    std::optional<ServiceAnswer> answer_;
};

}  // namespace cairn::erpc
