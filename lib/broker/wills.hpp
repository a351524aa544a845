// The farewell messages of programs, which are sent to their peers if they die, and those that are being sent.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "lib/base/time.hpp"
#include "lib/broker/messages.hpp"

namespace cairn::broker {

class Wills {
public:
    static constexpr std::size_t kMostOfOne = 16384;
    static constexpr int kTries = 4;                         // of each message, until its peer answers
    static constexpr Duration kBetween = milliseconds(300);  // doubled each time

    // Keeps a message. Returns false if the program has too many.
    [[nodiscard]] bool leave(Slot program, const Will& will);
    void revoke(Slot program, std::uint32_t name);
    // Begins to send the messages of a program that has died.
    void open(Slot program, Instant now);

    // Returns a message to be sent now, until there is none. It is valid until the next call.
    [[nodiscard]] const Will* poll(Instant now);
    // Notes that `from` has answered the message that ends the connection of that name. Answers from other addresses
    // than its peer's are ignored.
    void on_answer(std::uint32_t name, const net::IpAddress& from);
    [[nodiscard]] Instant next_deadline() const noexcept {
        return due_.empty() ? Instant::never() : due_.begin()->first;
    }
    // Returns whether no message is being sent.
    [[nodiscard]] bool idle() const noexcept { return under_way_.empty(); }

private:
    struct UnderWay {
        Will will{};
        int tries = 0;
        Instant due{};
    };

    void forget(std::uint32_t name);

    std::map<Slot, std::map<std::uint32_t, Will>> left_;  // by name
    std::map<std::uint32_t, UnderWay> under_way_;         // by name: the names of all programs differ
    std::set<std::pair<Instant, std::uint32_t>> due_;     // of messages under way
};

}  // namespace cairn::broker
