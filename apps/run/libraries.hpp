// Finds our libraries, relative to this program, in a build tree or an installed one.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::launch {

struct Libraries {
    std::vector<std::string> folders;  // the ones with a library that replaces the distribution's
    std::vector<std::string> names;    // of these: libibverbs.so.1 and librdmacm.so.1 if it was built
    std::string shim;                  // libcairn-shim.so; empty: not there

    // Returns `folders` in front of `before`, which may be empty, in the form of LD_LIBRARY_PATH.
    [[nodiscard]] std::string search_path(const std::string& before) const;
};

// Finds the libraries. Errors: there is no libibverbs.so.1; a folder's name that LD_LIBRARY_PATH cannot hold.
[[nodiscard]] Result<Libraries> find_libraries(const std::string& folder_of_program);

}  // namespace cairn::launch
