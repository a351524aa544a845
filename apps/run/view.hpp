// Lets a program see devices that only exist in its library. Some programs look into /sys/class/infiniband and for
// /dev/infiniband before they ask the library (UCX). Other programs see nothing of it.
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
// Returns the plan for these devices of this machine.
[[nodiscard]] ViewPlan plan_view(const std::vector<ibverbs::DeviceConfig>& devices);

// Moves this process into a mount namespace of its own, and into a user namespace if it takes one. There our files and
// nodes are added to all that were there. The user's number stays, and so do the user's rights, unless the user asked
// for namespaces. Errors: the kernel refuses, or judge_user_namespace() does. The process may have entered one of the
// two then, so probe_namespaces() comes first.
[[nodiscard]] Status enter_namespaces(const ViewPlan& plan, bool asked_for);
// Tries enter_namespaces() in a child. Errors: those of enter_namespaces().
[[nodiscard]] Status probe_namespaces(const ViewPlan& plan, bool asked_for);

// Writes the files and the nodes into a new folder, and returns its path. A process in the background removes it once
// this process, or the program that it becomes, has ended. Also removes folders whose background process was killed.
// Errors: no folder can be made, or no process.
[[nodiscard]] Result<std::string> make_shim_folder(const ViewPlan& plan);

// Prepares the view for the program that this process becomes. Errors: the wanted means is refused; with View::Auto,
// both means are.
[[nodiscard]] Status show_devices(View view, const ViewPlan& plan, const std::string& shim);

// Returns the error of a fork() that the kernel refused; `reason`: an errno value.
[[nodiscard]] Error no_process(int reason);

// Makes a file that is not there, and the folders above it. Returns false, with errno, if it cannot.
[[nodiscard]] bool write_view_file(const std::string& path, const std::string& text);

}  // namespace cairn::launch
