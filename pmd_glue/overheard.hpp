// Captures stdout and stderr while EAL starts, so that a failure can be reported in one line.
#pragma once

#include <string>

namespace cairn::pmd {

// Captures all output during its lifetime. There is one object at a time. If the process ends meanwhile, by exit()
// (EAL's -h) or by abort() (rte_panic), the output is passed on first.
class Overheard {
public:
    Overheard();
    Overheard(const Overheard&) = delete;
    Overheard& operator=(const Overheard&) = delete;
    ~Overheard() { (void)finish(); }

    // Stops capturing and returns the text.
    std::string finish();
};

}  // namespace cairn::pmd
