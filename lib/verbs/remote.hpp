// Lets other threads post: requests wait in a ring until the device's thread takes them in its turn.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/mpsc_ring.hpp"
#include "lib/verbs/device.hpp"

namespace cairn::verbs {

struct RemoteConfig {
    std::uint32_t slots = 256;  // a power of two, at least 2
};

// A request that its queue pair refused. It gets no completion.
struct RefusedPost {
    std::uint64_t wr_id = 0;
    bool is_receive = false;
    PostVerdict verdict{};
};

// Lets other threads post to one queue pair (Qp or UdQp), which must outlive it. Any thread may call post_send() and
// post_receive(). Everything else belongs to the driver: completions, making and ending this object. The requests of
// one thread keep their order. If the queue of the queue pair is full, its request and all later ones wait for room.
// The ring then fills, and posting returns QueueFull.
template <class Pair>
class Remote final : private RemotePosts {
public:
    using SendRequestOf = typename Pair::Request;
    static constexpr std::size_t kInlineBytes = 64;  // longer data must lie in registered memory
    static constexpr std::uint32_t kSges = 8;

    Remote(Device& device, Pair& pair, const RemoteConfig& config)
        : device_(device), pair_(pair), config_(config), ring_(config.slots) {
        device_.add(*this);
    }
    // No thread may post any more. Requests that were not taken are lost.
    ~Remote() { device_.remove(*this); }

    // Posts a request. Any thread may call it. Posted: the request will be posted, unless poll_refused() returns it.
    // QueueFull: the ring is full; try again later. TooManySges, BadInline: the request does not fit a slot. The memory
    // of the SGEs and the `to` of a datagram stay until completion.
    [[nodiscard]] PostVerdict post_send(const SendRequestOf& request) noexcept {
        const SendRequest& work = work_of(request);
        if (work.sges.size() > kSges) {
            return PostVerdict::TooManySges;
        }
        if (work.is_inline && work.inline_bytes.size() > kInlineBytes) {
            return PostVerdict::BadInline;
        }
        return push([&](Entry& entry) noexcept {
            entry.is_receive = false;
            entry.send = request;
            entry.copy(work.sges);
            entry.inline_count = work.is_inline ? work.inline_bytes.size() : 0;
            std::copy_n(work.inline_bytes.begin(), entry.inline_count, entry.inline_bytes.begin());
        });
    }
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest& request) noexcept {
        if (request.sges.size() > kSges) {
            return PostVerdict::TooManySges;
        }
        return push([&](Entry& entry) noexcept {
            entry.is_receive = true;
            entry.wr_id = request.wr_id;
            entry.copy(request.sges);
        });
    }

    // Returns each refused request once, to the driver.
    [[nodiscard]] std::optional<RefusedPost> poll_refused() noexcept {
        if (refused_) {
            device_.notice_posts();  // lets the requests after it go on
        }
        return std::exchange(refused_, std::nullopt);
    }

private:
    struct Entry {
        bool is_receive = false;
        std::uint64_t wr_id = 0;
        SendRequestOf send{};
        std::uint32_t sge_count = 0;
        std::size_t inline_count = 0;
        std::array<Sge, kSges> sges{};
        std::array<std::uint8_t, kInlineBytes> inline_bytes{};

        void copy(std::span<const Sge> from) noexcept {
            sge_count = static_cast<std::uint32_t>(from.size());
            std::copy(from.begin(), from.end(), sges.begin());
        }
    };

    template <class Fill>
    PostVerdict push(Fill&& fill) noexcept {
        if (!ring_.push(fill)) {
            return PostVerdict::QueueFull;
        }
        device_.notice_posts();
        return PostVerdict::Posted;
    }
    // Takes posts. After a refused request it takes no more until the driver has polled that one. Takes at most as many
    // as the ring holds, so that threads that post without end do not prolong the turn.
    bool drain() noexcept override {
        waits_for_room_ = false;
        for (std::uint32_t left = config_.slots; left > 0; --left) {
            if (refused_ || !ring_.pop([this](Entry& entry) noexcept { return take(entry); })) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] bool take(Entry& entry) noexcept {
        const std::span<const Sge> sges(entry.sges.data(), entry.sge_count);
        PostVerdict verdict{};
        if (entry.is_receive) {
            verdict = pair_->post_receive({entry.wr_id, sges});
        } else {
            SendRequest& work = work_of(entry.send);
            work.sges = sges;
            work.inline_bytes = std::span(entry.inline_bytes).first(entry.inline_count);
            entry.wr_id = work.wr_id;
            verdict = pair_->post_send(entry.send);
        }
        if (verdict != PostVerdict::Posted && verdict != PostVerdict::QueueFull) {
            refused_ = RefusedPost{entry.wr_id, entry.is_receive, verdict};
        }
        waits_for_room_ = verdict == PostVerdict::QueueFull;
        return !waits_for_room_;
    }

    Device& device_;
    Hold<Pair> pair_;
    RemoteConfig config_;
    MpscRing<Entry> ring_;
    std::optional<RefusedPost> refused_;
};

}  // namespace cairn::verbs
