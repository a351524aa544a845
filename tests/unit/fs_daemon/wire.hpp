// A wire in memory, and its time.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/support/wire_port.hpp"

namespace cairn::fs::test {

// A participant on the wire.
class Station {
public:
    [[nodiscard]] virtual cairn::test::WirePort& wire_port() = 0;
    // Takes a turn. Returns true if it did something.
    virtual bool take_turn(Instant now) = 0;
    [[nodiscard]] virtual Instant due() const = 0;

protected:
    ~Station() = default;
};

// The participants that the wire joins, and their time.
class Wire {
public:
    void add(Station& station) {
        for (Station* const other : stations_) {
            station.wire_port().join(other->wire_port());
            other->wire_port().join(station.wire_port());
        }
        station.wire_port().loses_strays = true;
        stations_.push_back(&station);
    }
    // Removes a participant that is about to end. Its last packets are lost.
    void remove(Station& station) {
        station.wire_port().fate = [](std::uint64_t) { return 0; };
        std::erase(stations_, &station);
    }
    // Lets time pass: in small steps while any station has work, else up to the next event.
    void pass(Duration span) {
        const Instant end = now + span;
        while (now < end) {
            bool any = false;
            Instant next = end;
            for (Station* const each : stations_) {
                any = each->take_turn(now) || any;
                next = std::min(next, each->due());
            }
            now = any ? now + kStep : std::max(now + kStep, next);
        }
        now = end;
    }
    template <class Done>
    [[nodiscard]] bool pass_until(const Done& done, Duration most = seconds(30)) {
        for (const Instant end = now + most; now < end && !done();) {
            pass(milliseconds(1));
        }
        return done();
    }

    Instant now{1'000'000'000};

private:
    static constexpr Duration kStep = microseconds(20);
    std::vector<Station*> stations_;
};

}  // namespace cairn::fs::test
