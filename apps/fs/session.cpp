#include "apps/fs/session.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

namespace cairn::fstool {

void Session::complain(std::string_view what, std::string_view path, int error) {
    std::fflush(stdout);
    fmt::print(stderr, "cairn-fs: cannot {} '{}': {}\n", what, path, std::strerror(error));
    status_ = 1;
}

bool Session::check(std::string_view what, std::string_view path, int error) {
    if (error != 0) {
        complain(what, path, error);
    }
    return error == 0;
}

void Session::fail(const Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "cairn-fs: {}\n", error.text());
    status_ = 1;
}

bool Session::is_directory(std::string_view path) {
    const fs::Outcome<fs::Attributes> found = fs.stat(path).wait();
    return found.ok() && S_ISDIR(found.value.mode);
}

std::string Session::target_of(std::string_view source, std::string_view target, bool is_into) {
    return is_into ? joined(target, last_name(source)) : std::string(target);
}

std::string inner_path(std::string_view path) {
    return std::string(path.starts_with(kPrefix) ? path.substr(kPrefix.size()) : path);
}

std::string joined(std::string_view directory, std::string_view name) {
    return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

std::string_view last_name(std::string_view path) noexcept {
    while (path.size() > 1 && path.ends_with('/')) {
        path.remove_suffix(1);
    }
    return path.substr(path.rfind('/') + 1);
}

}  // namespace cairn::fstool
