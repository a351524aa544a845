// Directory: finds eRPC services. The name of a service is a port number. Its host answers by SIDR, over queue pair 1,
// which queue pairs serve it (IBTA vol. 1, 12.11, and annex A11 for services of IP hosts).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "lib/base/result.hpp"
#include "lib/connections/home.hpp"

namespace cairn::erpc {

// A server's offer of its service.
struct ServiceOffer {
    Qpn qpn{};                  // queue pair of the first worker; the numbers of the other workers count up from it
    Qkey qkey{};                // Q_Key of all workers
    std::uint16_t workers = 1;  // [1, 2^15]
};

// The outcome of a question.
struct ServiceAnswer {
    enum class Outcome : std::uint8_t {
        Found,
        Silent,        // the host did not answer
        NoService,     // the host has no service of that name
        NotErpc,       // the service of that name is not eRPC
        OtherVersion,  // the service uses another version of eRPC's packets
    };
    Outcome outcome = Outcome::Silent;
    ServiceOffer offer{};  // valid if the service was found
};
// Returns a text for the operator: "it has no service of that name", ...
[[nodiscard]] const char* text_of(ServiceAnswer::Outcome outcome) noexcept;

// Uses a worker's connections, on that worker's thread. It asks one question at a time.
class Directory final : private cm::User {
public:
    // The connections outlive the directory.
    explicit Directory(connections::Home& home) noexcept : home_(home) {}
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    ~Directory() { home_.leave(*this); }

    // Gives the offer to every host that asks from now on. Errors: the name is taken.
    Status serve(std::uint16_t name, const ServiceOffer& offer);
    // Asks the host. poll_answer() gives the outcome; a silent host takes as long as the home's configuration allows
    // (about eight seconds with its defaults). An earlier question is forgotten. Errors: no host can have the address,
    // or its family is not ours.
    Status ask(const net::IpAddress& host, std::uint16_t name, Instant now);
    // Returns the outcome once, or nothing while the question is open.
    [[nodiscard]] std::optional<ServiceAnswer> poll_answer() { return std::exchange(answer_, std::nullopt); }

private:
    void on_event(const cm::Event& event, Instant now) override;

    connections::Home& home_;
    std::optional<cm::DatagramId> question_;
    std::optional<ServiceAnswer> answer_;
};

}  // namespace cairn::erpc
