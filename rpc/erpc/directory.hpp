// Directory: where eRPC services are. A service is named by a port number; whoever has it says by SIDR, over queue pair
// 1, which queue pairs serve it (IBTA vol. 1, 12.11, and annex A11 for services of IP hosts).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/result.hpp"
#include "lib/cm/management_qp.hpp"
#include "lib/worker/worker.hpp"

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
class Directory final : private cm::ManagementQp, private worker::Tenant {
public:
    // The worker outlives it. Answers to its questions come to `udp_source_port`. `seed` is hard to guess, and nobody
    // else has it. Errors: another one has queue pair 1.
    static Result<std::unique_ptr<Directory>> create(worker::Worker& worker, std::uint16_t udp_source_port,
                                                     const SipKey& seed);

    // Tells whoever asks, from now on. Errors: the name is taken.
    Status serve(std::uint16_t name, const ServiceOffer& offer);
    // Asks the host; poll_answer() says how it went, after about eight seconds of silence at the latest. A question
    // before that is forgotten. Errors: no host can have the address, or it is of another family than ours.
    Status ask(const net::IpAddress& host, std::uint16_t name, Instant now);
    [[nodiscard]] std::optional<ServiceAnswer> poll_answer();

private:
    using ManagementQp::ManagementQp;
    void heed(Instant now) override { send_messages(now); }  // events wait for poll_answer()
    bool on_turn(Instant now) noexcept override {
        run_due(now);
        return false;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return ManagementQp::next_deadline(); }

    std::optional<cm::DatagramId> question_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::erpc
