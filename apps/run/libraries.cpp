#include "apps/run/libraries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

namespace cairn::launch {

namespace {

// Relative to the folder of this program: installed; all in one folder; in a build tree.
constexpr std::array<const char*, 3> kPlaces{"../lib/cairn", ".", "../lib/ibverbs/shared"};
constexpr std::array<const char*, 2> kNames{"libibverbs.so.1", "librdmacm.so.1"};

std::optional<std::string> folder_of(const std::string& name, const std::string& beside) {
    for (const char* const place : kPlaces) {
        std::error_code none;
        const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::path(beside) / place, none);
        if (!none && std::filesystem::exists(folder / name, none)) {
            return folder.string();
        }
    }
    return std::nullopt;
}

}  // namespace

std::string Libraries::search_path(const std::string& before) const {
    return fmt::format("{}{}{}", fmt::join(folders, ":"), before.empty() ? "" : ":", before);
}

Result<Libraries> find_libraries(const std::string& folder_of_program) {
    Libraries found;
    for (const char* const name : kNames) {
        const auto folder = folder_of(name, folder_of_program);
        if (!folder) {
            continue;
        }
        if (folder->find_first_of(":;$") != std::string::npos) {
            return Error{fmt::format("LD_LIBRARY_PATH cannot hold the name of the folder {}", *folder),
                         "install into a folder without ':', ';' and '$' in its name"};
        }
        found.names.emplace_back(name);
        if (std::find(found.folders.begin(), found.folders.end(), *folder) == found.folders.end()) {
            found.folders.push_back(*folder);
        }
    }
    if (found.names.empty() || found.names.front() != kNames.front()) {
        return Error{fmt::format("there is no libibverbs.so.1 beside {}", folder_of_program),
                     "build it (ninja -C build), or install programs and libraries together"};
    }
    if (const auto folder = folder_of("libcairn-shim.so", folder_of_program)) {
        found.shim = *folder + "/libcairn-shim.so";
    }
    return found;
}

}  // namespace cairn::launch
