// Directory: where eRPC services are. A service is named by a port number; whoever has it says by SIDR, over queue pair
// 1, which queue pairs serve it (IBTA vol. 1, 12.11, and annex A11 for services of IP hosts).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/result.hpp"
#include "lib/cm/manager.hpp"
#include "lib/roce/sender.hpp"
#include "lib/roce/ud.hpp"

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
class Directory final : public roce::UdReceiver {
public:
    // Both outlive it. `seed` is hard to guess. Errors: another one has queue pair 1.
    static Result<std::unique_ptr<Directory>> create(roce::UdService& service, roce::Sender& sender,
                                                     std::uint64_t seed);
    ~Directory() override;
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    // Tells whoever asks, from now on. Errors: the name is taken.
    Status serve(std::uint16_t name, const ServiceOffer& offer);
    // Asks the host; poll_answer() says how it went, after about eight seconds of silence at the latest. A question
    // before that is forgotten. `udp_source_port`: answers come to it.
    void ask(const net::IpAddress& host, std::uint16_t name, std::uint16_t udp_source_port, Instant now);
    [[nodiscard]] std::optional<ServiceAnswer> poll_answer();

    void on_timeout(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept { return manager_.next_deadline(); }

private:
    Directory(roce::UdService& service, roce::Sender& sender, std::uint64_t seed);
    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override;
    void send_messages(Instant now);
    void send(const cm::OutMad& mad, Instant now);

    roce::UdService& service_;
    roce::Sender& sender_;
    cm::Manager manager_;
    roce::UdQp* qp1_ = nullptr;
    port::Path* arrived_by_ = nullptr;  // the datagram being looked at; its answer goes the same way
    std::uint16_t udp_source_port_ = 0;
    std::optional<cm::DatagramId> question_;
};

}  // namespace cairn::erpc
