#include "apps/run/view.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "lib/port/udp_socket.hpp"

namespace cairn::launch {

namespace {

// Returns the interface of the address. Addresses of 127.0.0.0/8 need not be an interface's own.
std::string interface_of(const net::IpAddress& address) {
    std::array<char, IF_NAMESIZE> name{};
    const unsigned index = port::interface_index(address).value_or(0);
    return index != 0 && if_indextoname(index, name.data()) != nullptr ? name.data() : "lo";
}

Status show_by_shim(const ViewPlan& plan, const std::string& shim) {
    if (shim.empty()) {
        return Error{"there is no libcairn-shim.so beside the library", "install it, or choose another --view"};
    }
    if (shim.find_first_of(": ") != std::string::npos) {
        return Error{fmt::format("LD_PRELOAD cannot hold the name {}", shim),
                     "install into a folder without ':' and spaces in its name"};
    }
    const Result<std::string> folder = make_shim_folder(plan);
    if (!folder.ok()) {
        return folder.error();
    }
    const char* const before = std::getenv("LD_PRELOAD");
    const bool has_others = before != nullptr && *before != 0;
    setenv("LD_PRELOAD", fmt::format("{}{}{}", shim, has_others ? ":" : "", has_others ? before : "").c_str(), 1);
    setenv("CAIRN_SHIM_ROOT", folder.value().c_str(), 1);
    return Nothing{};
}

// Returns the error if both means are refused, perhaps for one reason.
Error neither(const Error& namespaces, const Error& shim) {
    if (namespaces.what == shim.what) {
        return shim;
    }
    return {fmt::format("{}; {}", namespaces.what, shim.what),
            "--view none does without, for programs that ask the library alone"};
}

// Leaves the shim of an outer cairn-run, which may have started this one: this process has to see the real files.
void leave_outer_shim() {
    unsetenv("CAIRN_SHIM_ROOT");
}

}  // namespace

ViewPlan plan_view(const std::vector<ibverbs::DeviceConfig>& devices) {
    ViewPlan plan;
    std::vector<std::string> interfaces;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        interfaces.push_back(interface_of(devices[i].address));
        plan.nodes.push_back(device_node(i));
    }
    plan.files = class_files(devices, interfaces);
    return plan;
}

Error no_process(int reason) {
    return {fmt::format("cannot start a process: {}", std::strerror(reason)),
            "raise the limit of processes (ulimit -u, or that of the container)"};
}

bool write_view_file(const std::string& path, const std::string& text) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        if (mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) {
            return false;
        }
    }
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    const bool written =
        fd >= 0 && fchmod(fd, 0444) == 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (fd >= 0) {
        close(fd);
    }
    return written;
}

Status show_devices(View view, const ViewPlan& plan, const std::string& shim) {
    switch (view) {
        case View::None:
            return Nothing{};
        case View::Shim:
            return show_by_shim(plan, shim);
        case View::Namespaces:
        case View::Auto:
            break;
    }
    leave_outer_shim();
    const bool asked_for = view == View::Namespaces;
    const Status in_namespaces = probe_namespaces(plan, asked_for);
    if (in_namespaces.ok()) {
        return enter_namespaces(plan, asked_for);  // an error is the end: the process may have entered one namespace
                                                   // only, and no program may run there
    }
    if (asked_for) {
        return in_namespaces;
    }
    const Status by_shim = show_by_shim(plan, shim);
    return by_shim.ok() ? by_shim : Status(neither(in_namespaces.error(), by_shim.error()));
}

}  // namespace cairn::launch
