// A completion queue that many clients fill. It has room for all completions that the clients can cause. No host takes
// more of that room than it leaves to the others.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "lib/net/host_totals.hpp"
#include "lib/verbs/objects.hpp"

namespace cairn::perf {

// Slots of a completion queue. A queue that overruns once is lost for all. All requests of a queue pair may complete
// between two polls. So each has a slot from before the queue pair is made until after its end, which takes its
// completions out.
class CompletionRoom {
public:
    // The slots of one queue pair, for the lifetime of this object. The queue outlives it.
    class Place {
    public:
        Place() = default;
        Place(CompletionRoom& room, const net::IpAddress& host, std::uint32_t slots)
            : room_(&room), host_(host), slots_(slots) {}
        Place(Place&& other) noexcept
            : room_(std::exchange(other.room_, nullptr)), host_(other.host_), slots_(other.slots_) {}
        Place& operator=(Place&& other) noexcept {
            std::swap(room_, other.room_);
            std::swap(host_, other.host_);
            std::swap(slots_, other.slots_);
            return *this;
        }
        ~Place() {
            if (room_ != nullptr) {
                room_->give_back(host_, slots_);
            }
        }

    private:
        CompletionRoom* room_ = nullptr;
        net::IpAddress host_{};
        std::uint32_t slots_ = 0;
    };

    static constexpr std::uint32_t kMostSlots = roce::kMaxCompletionSlots;

    explicit CompletionRoom(std::unique_ptr<verbs::Cq> queue) : queue_(std::move(queue)) {}
    CompletionRoom(const CompletionRoom&) = delete;
    CompletionRoom& operator=(const CompletionRoom&) = delete;
    ~CompletionRoom() = default;

    [[nodiscard]] verbs::Cq& queue() noexcept { return *queue_; }

    // Takes slots for a queue pair of the host. The queue grows if it has to, to twice the need at most. Errors: the
    // host would have more slots than are left to others.
    Result<Place> take(const net::IpAddress& host, std::uint32_t slots) {
        const std::uint64_t all = taken_ + slots;
        if (held_.of(host) + slots + all > kMostSlots) {
            return Error{"the host's tests have more requests than the server has completions for",
                         "choose a smaller --depth or fewer --qps"};
        }
        if (all > queue_->slots()) {
            const Status grown = queue_->queue().resize(std::bit_ceil(static_cast<std::uint32_t>(all)));
            if (!grown.ok()) {
                return grown.error();
            }
        }
        held_.add(host, slots);
        taken_ = all;
        return Place(*this, host, slots);
    }

private:
    void give_back(const net::IpAddress& host, std::uint32_t slots) {
        taken_ -= slots;
        held_.remove(host, slots);
    }

    std::unique_ptr<verbs::Cq> queue_;
    net::HostTotals held_;     // slots by host
    std::uint64_t taken_ = 0;  // by all hosts
};

}  // namespace cairn::perf
