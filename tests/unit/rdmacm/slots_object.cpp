// A loaded object that calls an exported function of its own and a function of another object.
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
