// How a program gets to see devices that only exist in its library: for programs that look into /sys/class/infiniband
// and for /dev/infiniband before they ask the library (UCX). Nothing of it is seen by others.
#pragma once

#include <string>
#include <vector>

#include "apps/run/options.hpp"
#include "apps/run/view_files.hpp"
#include "lib/base/result.hpp"

namespace cairn::launch {

struct ViewPlan {
    std::vector<ViewFile> files;
    std::vector<std::string> nodes;  // below /dev/infiniband
};
// The plan for these devices of this machine.
[[nodiscard]] ViewPlan plan_view(const std::vector<ibverbs::DeviceConfig>& devices);

// Moves this process into a mount namespace of its own, and a user namespace if it takes one, where the files and the
// nodes stand beside all that stood there. The user keeps his number, and his rights unless he asked for namespaces.
// Errors: the kernel refuses, or judge_user_namespace() does; then this process may be half there, so that
// probe_namespaces() comes first.
[[nodiscard]] Status enter_namespaces(const ViewPlan& plan, bool asked_for);
// Tries the same in a child. Errors: those of enter_namespaces().
[[nodiscard]] Status probe_namespaces(const ViewPlan& plan, bool asked_for);

// Writes the files and the nodes into a new folder, which a process in the background removes once this one, or the
// program that it becomes, has ended. Removes folders whose keepers were killed. Returns the folder's path. Errors: no
// folder can be made, or no process.
[[nodiscard]] Result<std::string> make_shim_folder(const ViewPlan& plan);

// Prepares what `view` says, for the program that this process becomes. Errors: what was asked for is refused; with
// View::Auto, both ways are.
[[nodiscard]] Status show_devices(View view, const ViewPlan& plan, const std::string& shim);

// The error of a fork() that the kernel refused; `reason`: an errno value.
[[nodiscard]] Error no_process(int reason);

// Makes a file that is not there, and the folders above it. Returns false, with errno, if it cannot.
[[nodiscard]] bool write_view_file(const std::string& path, const std::string& text);

}  // namespace cairn::launch
