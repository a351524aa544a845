#include "pmd_glue/control_thread.hpp"

#include <rte_alarm.h>

#include <semaphore>

namespace cairn::pmd {

namespace {

struct Errand {
    void (*function)(void*);
    void* argument;
    std::binary_semaphore done{0};
};

}  // namespace

void run_on_control_thread(void (*function)(void* argument), void* argument) noexcept {
    Errand errand{function, argument};
    const auto run = [](void* context) {
        auto& what = *static_cast<Errand*>(context);
        what.function(what.argument);
        what.done.release();
    };
    if (rte_eal_alarm_set(1, run, &errand) == 0) {
        errand.done.acquire();
    } else {
        function(argument);
    }
}

void settle_control_thread() noexcept {
    const auto nothing = [](void*) {};
    run_on_control_thread(nothing, nullptr);  // may run before what came in the same turn
    run_on_control_thread(nothing, nullptr);
}

}  // namespace cairn::pmd
