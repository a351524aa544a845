// The port of an adapter: whether it is active, and the contexts that are notified of changes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/owned_fd.hpp"
#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/port_watch.hpp"

namespace cairn::ibverbs {

struct Context;

// A route socket of the kernel, which the adapter's helper watches as long as a context is open. If the kernel gives
// none, the port stays as it was found.
class PortNotices : public Watched {
public:
    // Returns the notices of the adapter.
    [[nodiscard]] static std::shared_ptr<PortNotices> of(const std::shared_ptr<Adapter>& adapter,
                                                         const net::IpAddress& address);
    PortNotices(std::shared_ptr<Adapter> adapter, const net::IpAddress& address);
    ~PortNotices() override;

    // Notifies the context of all changes from now on.
    void add(Context& context);
    void remove(Context& context) noexcept;

    // These need the lock.
    [[nodiscard]] int fd() const noexcept override { return socket_.get(); }
    void on_readable() noexcept override;
    // Takes in messages that the socket received.
    void on_messages(std::span<const std::uint8_t> bytes) noexcept;
    // Notes that the port fails on purpose, or works again.
    void on_failure(bool fails) noexcept { tell(watch_.set_failing(fails)); }
    // Asks the kernel for the state, since notices of it were lost.
    void on_notices_lost() noexcept;
    [[nodiscard]] bool is_active() const noexcept { return watch_.is_active(); }
    [[nodiscard]] bool has_address() const noexcept { return watch_.has_address(); }

private:
    void tell(const PortWatch::News& news) noexcept;

    std::shared_ptr<Adapter> adapter_;
    net::IpAddress address_;
    OwnedFd socket_;
    PortWatch watch_;
    std::vector<Context*> contexts_;
    bool is_behind_ = false;  // notices were lost, and the kernel could not be asked
};

}  // namespace cairn::ibverbs
