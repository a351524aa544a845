// What a program says to its broker about its connections, and says again to the next one.
#pragma once

#include <condition_variable>
#include <mutex>

#include "lib/base/parsed.hpp"
#include "lib/base/wakeup.hpp"
#include "lib/broker/account.hpp"

namespace cairn::broker {

enum class ClaimRefusal : std::uint8_t {
    Taken,     // another program has the service, or this one has as many as it may
    NoAnswer,  // there is no broker, or a silent one, and none answered in time
};

// Any thread may call these, unless it says otherwise. Only claim() waits: what the broker has no room for, or what is
// said while there is none, the membership's thread says once it can, in the order in which it was said. They do
// nothing in a signal handler that interrupted another call: it exits, perhaps.
class Voice {
public:
    // The program answers management datagrams from now on: see Manage.
    void manage();
    // Returns the service, which the program has from now on. Waits for an answer, and for a new broker if this one
    // dies, which answers a second after it has begun. Without one the program has what it had before: a grant that
    // comes later is given back.
    [[nodiscard]] Parsed<wire::ServiceId, ClaimRefusal> claim(wire::ServiceId service, bool shares,
                                                              Duration patience = seconds(5));
    void release(wire::ServiceId service);
    // See Will. A connection that ended by itself is revoked.
    void leave(const Will& will);
    void revoke(std::uint32_t name);

    // The membership's thread: there is a broker, which is told all again; `socket` stays open until end(). `sleeper`
    // is woken when go_on() is to be called.
    void begin(int socket, Wakeup& sleeper);
    void end();
    // The membership's thread: something waits for room at the socket.
    [[nodiscard]] bool waits_for_room();
    // The membership's thread, when there is room.
    void go_on();
    // The membership's thread: the broker said this.
    void hear(const Claimed& said);
    // The membership's thread. It does not wait; without a broker or room the datagram is lost.
    void lead(const Stray& stray);
    // The membership's thread, when it ends.
    void say_farewell();
    // In a child of fork(), which has one thread: nothing is said any more, and nobody woken. claim() gets no answer.
    // mutants: broker-voice-forget-in-child
    void forget_in_child() noexcept { is_mute_ = true; }

private:
    // The lock, unless is_closed().
    class Held;

    [[nodiscard]] bool is_closed() const noexcept;
    void speak();
    void say_what_fits();

    std::mutex mutex_;
    std::condition_variable answered_;
    bool is_mute_ = false;  // in a child, where whoever held the lock is not there to finish
    int socket_ = -1;
    Wakeup* sleeper_ = nullptr;
    bool waits_for_room_ = false;
    Account account_;
};

}  // namespace cairn::broker
