// The common part of the two ends of a pair of workers that call over eRPC and use RDMA at once.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/base/endian.hpp"
#include "lib/port/qpn_owners.hpp"
#include "lib/worker/loop.hpp"
#include "pmd_glue/lcores.hpp"
#include "tests/support/tenants.hpp"

namespace cairn::both {

using connections::Tenants;

// The address of the server's memory: the private data of the answer to a connection's request.
struct RawOffer {
    Be64 address;
    Be32 rkey;
};
static_assert(sizeof(RawOffer) == 12 && alignof(RawOffer) == 1);

class Side : public worker::Task {
public:
    Side(std::unique_ptr<port::Port> port, std::shared_ptr<connections::Agent> agent, std::uint16_t number,
         std::uint64_t seed)
        : port_(std::move(port)),
          tenants_(*port_, std::move(agent), port::QpnOwners(pmd::worker_count()).bits(), number, seed) {}

    [[nodiscard]] bool run_turn(Instant now) noexcept final {
        const bool worked = tenants_.worker->turn(now);
        return step(now) || worked;
    }
    [[nodiscard]] bool finished(Instant) const noexcept final { return over_; }
    [[nodiscard]] bool succeeded() const noexcept { return over_ && !failed_; }
    // Returns how many calls were made or handled.
    [[nodiscard]] virtual std::uint64_t calls() const noexcept = 0;
    // Returns how many rounds of a WRITE and a READ were made.
    [[nodiscard]] virtual std::uint64_t rounds() const noexcept { return 0; }

protected:
    // Does what is possible now. Returns true if there was anything.
    virtual bool step(Instant now) noexcept = 0;
    void end() noexcept { over_ = true; }
    // Ends this side with a failure and reports `what` once, unless `so`.
    void require(bool so, std::string_view what) noexcept {
        if (!so && !failed_) {
            fmt::print(stderr, "memif-both: {}\n", what);
            failed_ = over_ = true;
        }
    }
    [[nodiscard]] bool is_over() const noexcept { return over_; }
    [[nodiscard]] Tenants& tenants() noexcept { return tenants_; }
    [[nodiscard]] const Tenants& tenants() const noexcept { return tenants_; }

private:
    std::unique_ptr<port::Port> port_;
    Tenants tenants_;
    bool over_ = false;
    bool failed_ = false;
};

}  // namespace cairn::both
