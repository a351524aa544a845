// What is written to stdout and stderr while EAL starts, so that a failure can be told in one line.
#pragma once

#include <string>

namespace cairn::pmd {

// Takes it all while it lives; there is one at a time. Should the process end meanwhile, by exit() (EAL's -h) or by
// abort() (rte_panic), what was said is passed on first.
class Overheard {
public:
    Overheard();
    Overheard(const Overheard&) = delete;
    Overheard& operator=(const Overheard&) = delete;
    ~Overheard() { (void)finish(); }

    // Ends listening; the text.
    std::string finish();
};

}  // namespace cairn::pmd
