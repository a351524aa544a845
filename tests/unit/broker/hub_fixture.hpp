// A hub whose actions the test records.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "lib/broker/hub.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::broker {

class HubTest : public testing::Test, protected Hands {
protected:
    Instant read_clock() override { return now; }
    Opening open() override {
        ++openings;
        return taken ? Opening::Taken : (++sockets, Opening::Open);
    }
    Growth grow() override {
        ++growths;
        now = now + probing;
        if (growth == Growth::Grown) {
            ++sockets;
        }
        return growth;
    }
    std::optional<std::uint16_t> adopt(ClientId) override {
        if (brought) {
            sockets = std::max(sockets, *brought);
            return sockets;
        }
        return std::nullopt;
    }
    void drain(Slot slot) override { drained.push_back(slot.value); }
    bool send(ClientId client, const Message& message) override {
        if (full) {
            return false;
        }
        if (const Refused* const refused = std::get_if<Refused>(&message)) {
            refusals.emplace_back(client.value, refused->why);
        } else if (const Lent* const lent = std::get_if<Lent>(&message)) {
            lendings.emplace_back(client.value, *lent);
        } else if (const Claimed* const claimed = std::get_if<Claimed>(&message)) {
            answers.emplace_back(client.value, *claimed);
        } else {
            strays.push_back(client.value);
        }
        return true;
    }
    bool send_sockets(ClientId client) override {
        copied.push_back(client.value);
        return true;
    }
    void end(ClientId client) override { ended.push_back(client.value); }
    void send_mad(const Will& will) override { said.push_back(will.name); }

    void connect(std::uint64_t id) { hub.on_connected(ClientId{id}, now); }
    void say(std::uint64_t id, const Message& message) { hub.on_message(ClientId{id}, message, now); }
    // Returns the slot, or 0 if none was lent.
    unsigned join(std::uint64_t id) {
        const std::size_t before = lendings.size();
        connect(id);
        say(id, Join{});
        return lendings.size() == before ? 0U : lendings.back().second.slot.value;
    }
    void pass(Duration span) {
        now = now + span;
        hub.on_timeout(now);
    }
    static Stray stray_for(std::uint32_t qpn) {
        static std::array<std::uint8_t, 16> bytes;
        reinterpret_cast<wire::RawBth*>(bytes.data())->dest_qpn.set(qpn);
        Stray stray;
        stray.bytes = bytes;
        return stray;
    }
    std::uint64_t count(Counter counter) { return hub.counters().of(counter); }

    bool taken = false;
    bool full = false;
    Growth growth = Growth::Grown;
    Duration probing{};  // how long growing takes
    int openings = 0;
    int growths = 0;
    std::optional<std::uint16_t> brought{};
    std::uint16_t sockets = 0;
    std::vector<unsigned> drained;
    std::vector<std::uint64_t> copied;
    std::vector<std::uint64_t> strays;
    std::vector<std::uint64_t> ended;
    std::vector<std::pair<std::uint64_t, Claimed>> answers;
    std::vector<std::uint32_t> said;
    std::vector<std::pair<std::uint64_t, Lent>> lendings;
    std::vector<std::pair<std::uint64_t, Refusal>> refusals;
    HubConfig config{};
    Instant now{seconds(100).ns};
    const net::IpAddress local = net::IpAddress::from_v4(0x7f000001);
    const net::IpAddress peer = net::IpAddress::from_v4(0x7f000002);
    Hub hub{*this, local, config, now};
};

}  // namespace cairn::broker
