// The sockets of one address, as a NIC has queues: one for each worker. The kernel steers a datagram by its queue pair;
// one that came to another worker's socket all the same changes over by a ring.
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

// A datagram on its way to its worker. It is copied, once into the ring and once out of it: of a batch of 64 KB that
// several workers held parts of each reference would have to be atomic, those of the common case, too, and the last
// one's worker would have to send the memory back. Few datagrams take this way.
struct HandedOver {
    net::IpAddress remote{};
    Instant empty_at{};  // of the port where it came in
    std::uint16_t udp_source_port = 0;
    std::uint16_t index = 0;  // in its batch
    std::uint16_t len = 0;
    std::uint8_t ecn = 0;
    std::array<std::uint8_t, kMaxUdpPayloadBytes> bytes{};
};

struct SocketQueuesConfig {
    net::IpAddress local{};
    std::uint16_t udp_port = 4791;
    std::uint32_t workers = 1;
    std::string pcap;  // a file for every datagram of all workers, with lower headers as a NIC would show them
};

// What the workers of one address have in common. Their ports share it, so that sockets and rings are there until the
// last port has ended.
class SocketQueues {
public:
    // Errors: those of UdpSocket::open_all() and of the capture's file, too many workers, no descriptor is left.
    static Result<std::shared_ptr<SocketQueues>> open(const SocketQueuesConfig& config);

    [[nodiscard]] const net::IpAddress& local() const noexcept { return config_.local; }
    [[nodiscard]] std::uint16_t udp_port() const noexcept { return config_.udp_port; }
    [[nodiscard]] const QpnOwners& owners() const noexcept { return owners_; }

private:
    friend class SocketQueue;
    static constexpr std::uint32_t kRingSlots = 512;  // four batches of as many datagrams as one takes

    // Where other workers leave what is this one's.
    struct Inbox {
        MpscRing<HandedOver> ring{kRingSlots};
        std::unique_ptr<Wakeup> wakeup;
    };

    SocketQueues(const SocketQueuesConfig& config, std::vector<UdpSocket> sockets)
        : config_(config), owners_(config.workers), sockets_(std::move(sockets)) {}

    SocketQueuesConfig config_;
    QpnOwners owners_;
    std::vector<UdpSocket> sockets_;
    std::vector<std::unique_ptr<Inbox>> inboxes_;  // none where there is one worker
    std::unique_ptr<DatagramCapture> capture_;
};

// One worker's part of it. One thread uses it.
class SocketQueue {
public:
    SocketQueue(std::shared_ptr<SocketQueues> all, std::uint32_t worker);

    [[nodiscard]] UdpSocket& socket() noexcept { return socket_; }
    [[nodiscard]] const UdpSocket& socket() const noexcept { return socket_; }
    // nullptr: nothing is recorded.
    [[nodiscard]] DatagramCapture::Lane* capture() noexcept;
    // "socket 1 of 4"; nothing where there is one.
    [[nodiscard]] std::string describe() const;

    // No other worker has the address.
    [[nodiscard]] bool is_alone() const noexcept { return inbox_ == nullptr; }
    // Whose the datagram is, by its BTH.
    [[nodiscard]] std::uint16_t owner_of(const std::uint8_t* bth) const noexcept {
        return all_->owners_.of(Qpn{reinterpret_cast<const wire::RawBth*>(bth)->dest_qpn.get()});
    }
    [[nodiscard]] bool is_ours(const std::uint8_t* bth) const noexcept { return owner_of(bth) == worker_; }

    // `fill` writes the datagram for that worker. False: its ring is full.
    template <class Fill>
    [[nodiscard]] bool hand_over(std::uint16_t to, Fill&& fill) noexcept {
        to_wake_[to] = any_to_wake_ = 1;
        return all_->inboxes_[to]->ring.push(fill);
    }
    // Wakes those that something was handed to since.
    void wake_others() noexcept {
        if (any_to_wake_ != 0) {
            wake_each();
        }
    }

    // Nothing was handed to this worker.
    [[nodiscard]] bool empty() const noexcept { return is_alone() || inbox_->ring.empty(); }
    // The oldest of what was handed to it. False: there is none.
    template <class Take>
    [[nodiscard]] bool take(Take&& take) noexcept {
        const auto all_of_it = [&take](const HandedOver& datagram) noexcept {
            take(datagram);
            return true;
        };
        return !is_alone() && inbox_->ring.pop(all_of_it);
    }

    // Readable when something was handed over to the sleeper; -1 where nobody hands over.
    [[nodiscard]] int wakeup_fd() const noexcept { return is_alone() ? -1 : inbox_->wakeup->fd(); }
    // As those of Wakeup: the owner then looks whether it is empty(), and sleeps.
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
    SocketQueues::Inbox* const inbox_;   // nullptr: alone
    std::vector<std::uint8_t> to_wake_;  // by worker
    std::uint8_t any_to_wake_ = 0;
    bool sleeps_ = false;
};

}  // namespace cairn::port
