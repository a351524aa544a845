// The sockets of one address: one for each worker, as a NIC has queues. The kernel steers a datagram by its queue pair.
// A datagram that still comes to another worker's socket goes to its worker through a ring.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/mpsc_ring.hpp"
#include "lib/base/wakeup.hpp"
#include "lib/port/datagram_capture.hpp"
#include "lib/port/port.hpp"
#include "lib/port/udp_socket.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::port {

// A datagram on its way to its worker. It is copied into the ring and out of it. Sharing the batch instead would cost
// the common case more. Several workers would hold parts of a batch of 64 KB. All references would have to be atomic,
// and the last worker would have to send the memory back. Few datagrams take this way.
struct HandedOver {
    net::IpAddress remote{};
    Instant empty_at{};  // empty_at() of the port where it came in
    std::uint16_t udp_source_port = 0;
    std::uint16_t index = 0;  // its place in its batch
    std::uint16_t len = 0;
    std::uint8_t ecn = 0;
    std::array<std::uint8_t, kMaxUdpPayloadBytes> bytes{};
};

struct SocketQueuesConfig {
    net::IpAddress local{};
    std::uint16_t udp_port = 4791;
    std::uint32_t workers = 1;
    std::string pcap;  // capture file for the datagrams of all workers; empty: none
};

// The common state of the workers of one address. Their ports share it, so that sockets and rings live until the last
// port has ended.
class SocketQueues {
public:
    // Opens the sockets. Errors: as UdpSocket::open_all(); the capture file cannot be written; there are too many
    // workers; no descriptor is left.
    static Result<std::shared_ptr<SocketQueues>> open(const SocketQueuesConfig& config);

    // Makes the state of a process that has one socket of an address, which it shares with other processes (see
    // lib/broker). Its port is worker `slot` of kMostWorkers. Datagrams for other workers wait in an outbox. Errors:
    // the capture file cannot be written; no descriptor is left.
    static Result<std::shared_ptr<SocketQueues>> lend(const SocketQueuesConfig& config, UdpSocket socket,
                                                      std::uint32_t slot);
    // Hands a datagram to the process of a lent socket. Any thread may call it. `fill` writes a datagram that came to
    // another process and is for this one, or for no worker in particular. Returns false if the worker does not keep
    // up.
    template <class Fill>
    [[nodiscard]] bool bring(Fill&& fill) noexcept {
        const bool brought = inboxes_[kOwn]->ring.push(fill);
        inboxes_[kOwn]->wakeup->wake();
        return brought;
    }
    // Calls `take` with the oldest datagram that is for another process than the lent socket's. One thread calls it.
    // Returns false if there is none. outbox_wakeup() wakes a thread that began to sleep.
    template <class Take>
    [[nodiscard]] bool take_out(Take&& take) noexcept {
        return inboxes_[kOut]->ring.pop([&take](const HandedOver& datagram) noexcept {
            take(datagram);
            return true;
        });
    }
    [[nodiscard]] int lent_socket() const noexcept { return sockets_.front().fd(); }
    [[nodiscard]] bool outbox_empty() const noexcept { return inboxes_[kOut]->ring.empty(); }
    [[nodiscard]] Wakeup& outbox_wakeup() noexcept { return *inboxes_[kOut]->wakeup; }

    [[nodiscard]] const net::IpAddress& local() const noexcept { return config_.local; }
    [[nodiscard]] std::uint16_t udp_port() const noexcept { return config_.udp_port; }
    [[nodiscard]] const QpnOwners& owners() const noexcept { return owners_; }

private:
    friend class SocketQueue;
    static constexpr std::uint32_t kRingSlots = 512;  // four batches of the largest number of datagrams
    static constexpr std::uint32_t kLentSlots = 128;
    static constexpr std::size_t kOwn = 0;  // of the inboxes of a lent socket
    static constexpr std::size_t kOut = 1;

    // The ring in which other workers leave datagrams for this worker.
    struct Inbox {
        explicit Inbox(std::uint32_t slots) : ring(slots) {}

        MpscRing<HandedOver> ring;
        std::unique_ptr<Wakeup> wakeup;
    };

    SocketQueues(const SocketQueuesConfig& config, std::vector<UdpSocket> sockets)
        : config_(config), owners_(config.workers), sockets_(std::move(sockets)) {}
    Status make_inboxes(std::uint32_t count, std::uint32_t slots);
    Status open_capture(std::uint32_t lanes);
    // Returns the place of a worker's socket, inbox and lane of a capture.
    [[nodiscard]] std::size_t place_of(std::uint32_t worker) const noexcept {
        return !lent_ ? worker : worker == slot_ ? kOwn : kOut;
    }

    SocketQueuesConfig config_;
    QpnOwners owners_;
    std::vector<UdpSocket> sockets_;
    std::vector<std::unique_ptr<Inbox>> inboxes_;  // empty if there is one worker
    std::unique_ptr<DatagramCapture> capture_;
    bool lent_ = false;
    std::uint32_t slot_ = 0;  // of a lent socket
};

// One worker's part of SocketQueues. Belongs to one thread.
class SocketQueue {
public:
    SocketQueue(std::shared_ptr<SocketQueues> all, std::uint32_t worker);

    [[nodiscard]] UdpSocket& socket() noexcept { return socket_; }
    [[nodiscard]] const UdpSocket& socket() const noexcept { return socket_; }
    // Returns this worker's lane; nullptr if nothing is recorded.
    [[nodiscard]] DatagramCapture::Lane* capture() noexcept;
    // Returns "socket 1 of 4"; an empty text if there is one socket.
    [[nodiscard]] std::string describe() const;

    // Returns true if no other worker has the address.
    [[nodiscard]] bool is_alone() const noexcept { return inbox_ == nullptr; }
    // Returns the worker that the datagram belongs to, by its BTH.
    [[nodiscard]] std::uint16_t owner_of(const std::uint8_t* bth) const noexcept {
        return all_->owners_.of(Qpn{reinterpret_cast<const wire::RawBth*>(bth)->dest_qpn.get()});
    }
    [[nodiscard]] bool is_ours(const std::uint8_t* bth) const noexcept { return owner_of(bth) == worker_; }

    // Calls `fill`, which writes the datagram into the ring of worker `to`. Returns false if the ring is full.
    template <class Fill>
    [[nodiscard]] bool hand_over(std::uint16_t to, Fill&& fill) noexcept {
        const std::size_t place = all_->place_of(to);
        to_wake_[place] = any_to_wake_ = 1;
        return all_->inboxes_[place]->ring.push(fill);
    }
    // Wakes the workers that got a datagram since the last call.
    void wake_others() noexcept {
        if (any_to_wake_ != 0) {
            wake_each();
        }
    }

    // Returns true if no datagram waits that was handed to this worker.
    [[nodiscard]] bool empty() const noexcept { return is_alone() || inbox_->ring.empty(); }
    // Calls `take` with the oldest datagram handed to this worker and removes it. Returns false if there is none.
    template <class Take>
    [[nodiscard]] bool take(Take&& take) noexcept {
        const auto all_of_it = [&take](const HandedOver& datagram) noexcept {
            take(datagram);
            return true;
        };
        return !is_alone() && inbox_->ring.pop(all_of_it);
    }

    // Returns a descriptor that is readable if something was handed over while the worker sleeps; -1 if no other worker
    // exists.
    [[nodiscard]] int wakeup_fd() const noexcept { return is_alone() ? -1 : inbox_->wakeup->fd(); }
    // As the functions of Wakeup. After begin_sleep() the owner looks if the queue is empty(), and then sleeps.
    void begin_sleep() noexcept;
    void end_sleep() noexcept {
        if (std::exchange(sleeps_, false)) [[unlikely]] {
            inbox_->wakeup->end_sleep();
        }
    }

private:
    void wake_each() noexcept;

    std::shared_ptr<SocketQueues> all_;
    const std::uint32_t worker_;
    UdpSocket& socket_;
    SocketQueues::Inbox* const inbox_;   // nullptr: no other worker exists
    std::vector<std::uint8_t> to_wake_;  // by inbox
    std::uint8_t any_to_wake_ = 0;
    bool sleeps_ = false;
};

}  // namespace cairn::port
