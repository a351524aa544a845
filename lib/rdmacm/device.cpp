#include "lib/rdmacm/device.hpp"

#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <random>

#include "lib/base/monotonic_clock.hpp"
#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/in_use.hpp"
#include "lib/ibverbs/objects.hpp"
#include "lib/ibverbs/of_process.hpp"
#include "lib/port/udp_socket.hpp"
#include "lib/rdmacm/exchange.hpp"

namespace cairn::rdmacm {

namespace {

struct Process {
    std::mutex mutex;
    std::vector<std::unique_ptr<Device>> devices;
    std::mutex of_ports;  // taken last
    PortTable ports;
    std::minstd_rand chance{std::random_device{}()};
};
// The state of this process. A child of fork() has no connections. It forgets its parent's without ending them.
using OfThisProcess = ibverbs::OfProcess<Process>;

// Notifies the peers of a program that exits, as a kernel does that closes its files. Does nothing if exit()
// interrupted a turn.
void end_connections() noexcept {
    Process* const all = OfThisProcess::find();
    if (all == nullptr || !all->mutex.try_lock()) {
        return;
    }
    const Instant deadline = read_monotonic() + ibverbs::InUse::kExits;
    for (const std::unique_ptr<Device>& each : all->devices) {
        if (each->adapter().lock().lock_until(deadline)) {
            each->exchange->end_all();
            each->adapter().lock().unlock();
        }
    }
    all->mutex.unlock();
}

Process& process() {
    Process& all = OfThisProcess::get();
    static const bool registered = [] {
        pthread_atfork(nullptr, nullptr, EventLock::renew);
        std::atexit(end_connections);
        return true;
    }();
    static_cast<void>(registered);
    return all;
}

// Opens the device. Needs the lock of the process.
Device* open_locked(Process& all, const ibverbs::Device& of) {
    const auto known = std::find_if(all.devices.begin(), all.devices.end(),
                                    [&of](const std::unique_ptr<Device>& each) { return each->of == &of; });
    if (known != all.devices.end()) {
        return known->get();
    }
    auto device = std::make_unique<Device>();
    device->of = &of;
    device->verbs = ibv_open_device(const_cast<ibverbs::Device*>(&of));
    if (device->verbs == nullptr) {
        return nullptr;
    }
    device->pd = ibv_alloc_pd(device->verbs);
    if (device->pd == nullptr) {
        return nullptr;
    }
    Result<std::unique_ptr<Exchange>> exchange = Exchange::open(*device);
    if (!exchange.ok()) {
        complain(ibverbs::Speaker::Cm, exchange.error());
        errno = ENODEV;
        return nullptr;
    }
    device->exchange = std::move(exchange).value();
    all.devices.push_back(std::move(device));
    return all.devices.back().get();
}

}  // namespace

Device::Device() noexcept = default;

// Called only for a device that could not be opened: others stay.
Device::~Device() {
    if (pd != nullptr) {
        ibv_dealloc_pd(pd);
    }
    if (verbs != nullptr) {
        ibv_close_device(verbs);
    }
}

ibverbs::Adapter& Device::adapter() const noexcept {
    return ibverbs::adapter_of(verbs);
}

Device* open_device(const ibverbs::Device& of) {
    Process& all = process();
    const std::lock_guard hold(all.mutex);
    return open_locked(all, of);
}

Device* device_at(const net::IpAddress& address) {
    for (const auto& each : ibverbs::all_devices()) {
        if (each->config.address == address) {
            return open_device(*each);
        }
    }
    errno = ENODEV;
    return nullptr;
}

void explain_address(const net::IpAddress& address) {
    const std::vector<ibverbs::DeviceConfig>& devices = ibverbs::environment_of_process().devices;
    const bool has_device =
        std::any_of(devices.begin(), devices.end(), [&address](const auto& each) { return each.address == address; });
    const Status there = port::check_address(address);
    if (has_device && !there.ok()) {
        complain(ibverbs::Speaker::Cm, there.error());
    } else if (!has_device && there.ok()) {
        complain(ibverbs::Speaker::Cm, Error{"no device has the address " + address.text(),
                                             ibverbs::text_with(devices, address) + " gives it one"});
    }
}

std::vector<Device*> open_all() {
    std::vector<Device*> opened;
    for (const auto& each : ibverbs::all_devices()) {
        if (Device* const device = open_device(*each)) {
            opened.push_back(device);
        }
    }
    return opened;
}

std::vector<Device*> open_devices() {
    Process& all = process();
    const std::lock_guard hold(all.mutex);
    std::vector<Device*> opened;
    for (const std::unique_ptr<Device>& each : all.devices) {
        opened.push_back(each.get());
    }
    return opened;
}

ibv_xrcd* xrcd_of(Device& device) {
    const std::lock_guard hold(process().mutex);
    if (device.xrcd == nullptr) {
        ibv_xrcd_init_attr wanted{};
        wanted.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        wanted.fd = -1;
        wanted.oflags = O_CREAT;
        device.xrcd = ibv_open_xrcd(device.verbs, &wanted);
    }
    return device.xrcd;
}

std::uint16_t claim_port(const PortClaim& wanted) {
    Process& all = process();
    const std::lock_guard hold(all.of_ports);
    return all.ports.claim(wanted, static_cast<std::uint32_t>(all.chance()));
}

bool change_port(const PortClaim& to) {
    Process& all = process();
    const std::lock_guard hold(all.of_ports);
    return all.ports.change(to);
}

bool release_port(const PortClaim& held) noexcept {
    Process* const all = OfThisProcess::find();
    if (all == nullptr) {
        return false;
    }
    const std::lock_guard hold(all->of_ports);
    return all->ports.release(held);
}

int claim_service(const Device& device, wire::ServiceId service, bool shares) {
    broker::Voice* const voice = device.adapter().voice();
    if (voice == nullptr) {
        return 0;
    }
    const auto claimed = voice->claim(service, shares);
    if (claimed.ok()) {
        return 0;
    }
    if (claimed.reason() == broker::ClaimRefusal::Taken) {
        return EADDRINUSE;
    }
    complain(ibverbs::Speaker::Cm,
             Error{"the broker of " + device.address().text() + " does not answer", "see if cairn-broker is stopped"});
    return ETIMEDOUT;
}

void release_service(const Device& device, wire::ServiceId service) {
    if (broker::Voice* const voice = device.adapter().voice()) {
        voice->release(service);
    }
}

}  // namespace cairn::rdmacm
