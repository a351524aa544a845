// The services of an address, by the program that has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lib/broker/messages.hpp"

namespace cairn::broker {

class Services {
public:
    static constexpr std::size_t kMostOfOne = 32768;  // services that a program may have

    // Gives the service to the program. Returns false if another has it, or the program has too many.
    [[nodiscard]] bool claim(Slot program, const Claim& wanted);
    void release(Slot program, wire::ServiceId service);
    // Forgets the services of a program that has ended.
    void forget(Slot program);
    // Returns whether the program shares the service; nullopt if it has not got it.
    [[nodiscard]] std::optional<bool> shares(Slot program, wire::ServiceId service) const;
    // Returns the program that has the service, or the first of several.
    [[nodiscard]] std::optional<Slot> holder(wire::ServiceId service) const;
    // Returns the program that gets the service's requests. That is the holder, else the one that gave the port back
    // last, in either port space, unless another has claimed it since. The latter program may listen there again in a
    // moment: it holds the requests or refuses them.
    [[nodiscard]] std::optional<Slot> receiver(wire::ServiceId service) const;

private:
    struct Holder {
        Slot program{};
        bool shares = false;
    };

    using Leavers = std::map<std::uint16_t, Slot>;  // by port
    [[nodiscard]] bool may_have(Slot program, wire::ServiceId service, bool shares) const;
    [[nodiscard]] Leavers::const_iterator who_left(wire::ServiceId service) const;

    std::map<wire::ServiceId, std::vector<Holder>> holders_;
    Leavers left_by_;
    std::map<Slot, std::size_t> counts_;
};

}  // namespace cairn::broker
