// What a program says to its broker about its connections, and says again to the next one.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "lib/base/parsed.hpp"
#include "lib/broker/messages.hpp"

namespace cairn::broker {

enum class ClaimRefusal : std::uint8_t {
    Taken,     // another program has the service, or this one has as many as it may
    NoAnswer,  // there is no broker, and none came back in time
};

// Any thread may call these, unless it says otherwise. What is said while there is no broker is said to the next one.
class Voice {
public:
    // The program answers management datagrams from now on: see Manage.
    void manage();
    // Returns the service, which the program has from now on. Waits for the broker's answer.
    [[nodiscard]] Parsed<wire::ServiceId, ClaimRefusal> claim(wire::ServiceId service, bool shares,
                                                              Duration patience = seconds(2));
    void release(wire::ServiceId service);
    // See Will. A connection that ended by itself is revoked.
    void leave(const Will& will);
    void revoke(std::uint32_t name);

    // The membership's thread: there is a broker, which is told all again; `socket` stays open until end(). Returns
    // false if it does not listen.
    bool begin(int socket);
    void end();
    // The membership's thread: the broker said this.
    void hear(const Claimed& said);
    // The membership's thread. It does not wait; without a broker or room the datagram is lost.
    void lead(const Stray& stray);
    // The membership's thread, when it ends.
    void say_farewell();

private:
    bool say(const Message& message);

    std::mutex mutex_;
    std::condition_variable answered_;
    int socket_ = -1;
    std::uint32_t last_ask_ = 0;
    bool manages_ = false;
    std::map<wire::ServiceId, bool> claims_;    // with whether it is shared
    std::map<std::uint32_t, Will> wills_;       // by name
    std::map<std::uint32_t, Claim> asked_;      // without an answer, by ask
    std::map<std::uint32_t, Claimed> answers_;  // that nobody has taken yet, by ask
};

}  // namespace cairn::broker
