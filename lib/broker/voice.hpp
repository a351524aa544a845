// A program's client of its broker. It sends the program's state, and sends it again to the next broker.
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

// Any thread may call these, unless the function's comment names one. Only claim() waits. Messages are kept while there
// is no broker, or no room at it. The membership's thread sends them in their order as soon as it can. The functions do
// nothing in a signal handler that interrupted another call: perhaps it exits.
class Voice {
public:
    // Requests management datagrams from now on: see Manage.
    void manage();
    // Claims the service for the program, and returns it. Waits for an answer. If the broker dies, waits for a new one,
    // which answers a second after it has begun. If no answer comes in time, the program keeps what it had before: a
    // grant that comes later is given back.
    [[nodiscard]] Parsed<wire::ServiceId, ClaimRefusal> claim(wire::ServiceId service, bool shares,
                                                              Duration patience = seconds(5));
    void release(wire::ServiceId service);
    // Leaves a message for the broker: see Will. If a connection ends by itself, the program revokes its message.
    void leave(const Will& will);
    void revoke(std::uint32_t name);

    // For the membership's thread: begins with a broker, which gets the whole state again. `socket` stays open until
    // end(). `sleeper` is woken when go_on() is to be called.
    void begin(int socket, Wakeup& sleeper);
    void end();
    // For the membership's thread: returns whether a message waits for room at the socket.
    [[nodiscard]] bool waits_for_room();
    // For the membership's thread: sends on, when there is room.
    void go_on();
    // For the membership's thread: takes in the broker's answer.
    void hear(const Claimed& said);
    // For the membership's thread: sends the datagram to the broker. It does not wait; without a broker or room the
    // datagram is lost.
    void lead(const Stray& stray);
    // For the membership's thread: sends the last message, when the thread ends.
    void say_farewell();
    // Makes it mute in a child of fork(), which has one thread. It sends no messages any more, and wakes no thread;
    // claim() gets no answer.
    void forget_in_child() noexcept { is_mute_ = true; }

private:
    // Holds the lock, unless is_closed().
    class Held;

    [[nodiscard]] bool is_closed() const noexcept;
    void speak();
    void say_what_fits();

    std::mutex mutex_;
    std::condition_variable answered_;
    bool is_mute_ = false;  // in a child: a thread that had the lock is not there to free it
    int socket_ = -1;
    Wakeup* sleeper_ = nullptr;
    bool waits_for_room_ = false;
    Account account_;
};

}  // namespace cairn::broker
