// A loaded object that calls a function of its own, which is exported, and one of another.
#include <unistd.h>

extern "C" {

int slots_own() {
    return 1;
}
int slots_call_own() {
    return slots_own();
}
int slots_call_other() {
    return getppid();
}
}
