// --info: the devices, as the library itself reports them, and the means that this machine allows.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstdio>

#include "apps/run/stat.hpp"
#include "apps/run/view.hpp"

namespace cairn::launch {

namespace {

// The library as a program loads it.
struct Verbs {
    decltype(&::ibv_get_device_list) get_device_list = nullptr;
    decltype(&::ibv_get_device_guid) get_device_guid = nullptr;
    decltype(&::ibv_open_device) open_device = nullptr;
    decltype(&::ibv_close_device) close_device = nullptr;
    decltype(&::ibv_query_device) query_device = nullptr;
    decltype(&::ibv_query_gid) query_gid = nullptr;

    template <class Function>
    static bool find(void* library, const char* name, Function& function) noexcept {
        function = reinterpret_cast<Function>(dlsym(library, name));
        return function != nullptr;
    }
    [[nodiscard]] bool load(const std::string& path) noexcept {
        void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        return library != nullptr && find(library, "ibv_get_device_list", get_device_list) &&
               find(library, "ibv_get_device_guid", get_device_guid) && find(library, "ibv_open_device", open_device) &&
               find(library, "ibv_close_device", close_device) && find(library, "ibv_query_device", query_device) &&
               find(library, "ibv_query_gid", query_gid);
    }
};

void show_gids(const Verbs& verbs, ibv_context* context, int gids) {
    for (int i = 0; i < gids; ++i) {
        ibv_gid gid{};
        std::array<char, INET6_ADDRSTRLEN> text{};
        if (verbs.query_gid(context, 1, i, &gid) == 0 && (gid.global.subnet_prefix | gid.global.interface_id) != 0) {
            fmt::print("    GID {}: {}\n", i, inet_ntop(AF_INET6, gid.raw, text.data(), text.size()));
        }
    }
}

void show_device(const Verbs& verbs, ibv_device* device, const std::string& address) {
    fmt::print("{}: address {}, GUID {:016x}\n", device->name, address, be64toh(verbs.get_device_guid(device)));
    ibv_context* const context = verbs.open_device(device);
    if (context == nullptr) {
        fmt::print("    cannot be opened now\n");
        return;
    }
    ibv_port_attr port{};
    if (ibv_query_port(context, 1, &port) == 0) {
        show_gids(verbs, context, port.gid_tbl_len);
        fmt::print("    path MTU {}, messages of up to {} bytes\n", 128U << static_cast<unsigned>(port.active_mtu),
                   port.max_msg_sz);
    }
    ibv_device_attr limits{};
    if (verbs.query_device(context, &limits) == 0) {
        fmt::print("    {} queue pairs of {} requests of {} pieces, {} READs and atomics under way in each\n",
                   limits.max_qp, limits.max_qp_wr, limits.max_sge, limits.max_qp_rd_atom);
        fmt::print("    {} completion queues of {}, {} shared receive queues, {} regions, {} windows\n", limits.max_cq,
                   limits.max_cqe, limits.max_srq, limits.max_mr, limits.max_mw);
    }
    verbs.close_device(context);
}

void show_machine(const Libraries& libraries, const ViewPlan& plan) {
    const Status namespaces = probe_namespaces(plan, false);
    const std::string shim =
        libraries.shim.empty() ? "there is no shim either: only programs that ask the library see them" : "the shim";
    fmt::print("/dev/infiniband and /sys/class/infiniband: {}\n",
               namespaces.ok() ? "by private namespaces" : fmt::format("by {} ({})", shim, namespaces.error().what));
    fmt::print("locked memory: not needed\nio_uring: not needed\nRDMA in the kernel: not needed\n");
}

}  // namespace

Status show_info(const Libraries& libraries, const std::vector<ibverbs::DeviceConfig>& devices) {
    const std::string path = libraries.folders.front() + "/libibverbs.so.1";
    Verbs verbs;
    if (!verbs.load(path)) {
        return Error{fmt::format("{} cannot be loaded: {}", path, dlerror()), "build it again"};
    }
    fmt::print("library: {}\n", path);
    int count = 0;
    ibv_device** const list = verbs.get_device_list(&count);
    for (int i = 0; i < count; ++i) {
        const bool is_known = static_cast<std::size_t>(i) < devices.size();
        show_device(verbs, list[i], is_known ? devices[static_cast<std::size_t>(i)].address.text() : "?");
    }
    show_machine(libraries, plan_view(devices));
    return Nothing{};
}

}  // namespace cairn::launch
