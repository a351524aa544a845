// A connection manager and the queue pair 1 of a port, by which its messages travel (IBTA vol. 1, 3.9.1).
#pragma once

#include <cstdint>

#include "lib/base/result.hpp"
#include "lib/cm/manager.hpp"
#include "lib/roce/send/sender.hpp"
#include "lib/roce/ud/mux.hpp"

namespace cairn::cm {

// What uses them derives from it. Of the worker that owns the port.
class ManagementQp : private roce::UdReceiver {
public:
    ManagementQp(const ManagementQp&) = delete;
    ManagementQp& operator=(const ManagementQp&) = delete;

    [[nodiscard]] Instant next_deadline() const noexcept { return manager_.next_deadline(); }

protected:
    // `service` and `sender` outlive it. `udp_source_port`: of what is not an answer; its answers come to it.
    ManagementQp(roce::UdMux& service, roce::Sender& sender, const Config& config, std::uint16_t udp_source_port);
    ~ManagementQp() override;
    // Before anything else. Errors: another one has queue pair 1.
    cairn::Status open();

    // The manager was given a message, or time passed. Ends with send_messages().
    virtual void heed(Instant now) = 0;
    // Whatever is due by `now`.
    void run_due(Instant now);
    void send_messages(Instant now);

    [[nodiscard]] Manager& manager() noexcept { return manager_; }
    [[nodiscard]] const Manager& manager() const noexcept { return manager_; }
    [[nodiscard]] net::IpAddress local_address() const noexcept { return sender_.port().local_address(); }
    // nullptr: as Port::open_path().
    [[nodiscard]] port::Path* own_path(const net::IpAddress& remote, Instant now);
    // The way that the message being looked at came by, if it is its sender's; else one of our own.
    [[nodiscard]] port::Path* path_to(const net::IpAddress& remote, Instant now);

private:
    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override;
    void send(const OutMad& mad, Instant now);

    roce::UdMux& service_;
    roce::Sender& sender_;
    Manager manager_;
    std::uint16_t udp_source_port_;
    roce::UdEntry* qp_ = nullptr;
    port::Path* arrived_by_ = nullptr;  // the message being looked at
};

}  // namespace cairn::cm
