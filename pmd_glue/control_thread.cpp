#include "pmd_glue/control_thread.hpp"

#include <rte_alarm.h>
#include <rte_interrupts.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

void park_control_thread() noexcept {
    std::binary_semaphore parked{0};
    const auto stay = [](void* context) {
        static_cast<std::binary_semaphore*>(context)->release();
        for (;;) {
            pause();
        }
    };
    // The source is our own, since rte_eal_cleanup() waits for an alarm that is being served. The source and its
    // descriptor stay until the process ends.
    static rte_intr_handle* source = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    const int ready = eventfd(1, EFD_CLOEXEC);
    if (source != nullptr && rte_intr_fd_set(source, ready) == 0 &&
        rte_intr_type_set(source, RTE_INTR_HANDLE_EXT) == 0 && rte_intr_callback_register(source, stay, &parked) == 0) {
        parked.acquire();
    }
}

}  // namespace cairn::pmd
