#include "lib/ibverbs/device.hpp"

#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/of_process.hpp"
#include "lib/ibverbs/statistics.hpp"
#include "lib/port/udp_socket.hpp"

namespace cairn::ibverbs {

namespace {

void set_text(char* out, std::size_t room, const std::string& text) noexcept {
    std::snprintf(out, room, "%s", text.c_str());
}

Environment read_or_explain() {
    Result<Environment> read = read_environment();
    if (!read.ok()) {
        complain(Speaker::Verbs, read.error());
        return {};
    }
    return std::move(read).value();
}

std::vector<std::unique_ptr<Device>> make_devices() {
    std::vector<std::unique_ptr<Device>> devices;
    for (const DeviceConfig& config : environment_of_process().devices) {
        auto device = std::make_unique<Device>();
        const int number = static_cast<int>(devices.size());
        device->node_type = IBV_NODE_CA;
        device->transport_type = IBV_TRANSPORT_IB;
        set_text(device->name, sizeof(device->name), config.name);
        set_text(device->dev_name, sizeof(device->dev_name), "uverbs" + std::to_string(number));
        set_text(device->dev_path, sizeof(device->dev_path),
                 "/sys/class/infiniband_verbs/uverbs" + std::to_string(number));
        set_text(device->ibdev_path, sizeof(device->ibdev_path), "/sys/class/infiniband/" + config.name);
        device->config = config;
        device->index = number + 1;
        devices.push_back(std::move(device));
    }
    return devices;
}

// The adapters in use, by device. A child of fork() has neither the helper threads nor the right to the sockets.
struct Adapters {
    std::mutex mutex;
    std::map<const Device*, std::weak_ptr<Adapter>> by_device;
};
}  // namespace

const std::vector<std::unique_ptr<Device>>& all_devices() {
    static const auto* const devices = new std::vector<std::unique_ptr<Device>>(make_devices());
    return *devices;
}

const Environment& environment_of_process() {
    static const auto* const environment = new Environment(read_or_explain());
    return *environment;
}

Result<std::shared_ptr<Adapter>> adapter_for(const Device& device) {
    auto& all = OfProcess<Adapters>::get();
    const std::lock_guard hold(all.mutex);
    std::weak_ptr<Adapter>& known = all.by_device[&device];
    std::shared_ptr<Adapter> adapter = known.lock();
    if (adapter == nullptr) {
        const Environment& of = environment_of_process();
        Result<std::shared_ptr<Adapter>> opened =
            Adapter::open({device.config.name, device.config.address, of.pcap, of.faults, of.spins});
        if (!opened.ok()) {
            return opened;
        }
        adapter = std::move(opened).value();
        known = adapter;
        show_statistics();
    }
    return adapter;
}

}  // namespace cairn::ibverbs
