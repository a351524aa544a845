// Programs and brokers come and go, stop, and are killed at any moment. A model of the kernel numbers their sockets as
// Linux does. In all cases a datagram reaches the program whose queue pair it names, or no program.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lib/broker/hub.hpp"
#include "lib/sim/random.hpp"
#include "tests/unit/broker/world_parts.hpp"

namespace cairn::broker {

class World {
public:
    explicit World(std::uint64_t seed) : random(seed) {
        const auto often = [this](std::uint64_t most) { return static_cast<std::uint32_t>(random.below(most)); };
        chances = {100'000 + often(400'000), often(300'000), random.chance(500'000) ? often(100'000) : 0,
                   random.chance(300'000) ? often(100'000) : 0, often(200'000)};
        config.sockets = static_cast<std::uint16_t>(2 + often(12));
        config.strangers = 1000;
    }

    void live(int steps) {
        for (int step = 0; step < steps; ++step) {
            now = now + Duration{static_cast<std::int64_t>(random.below(20'000'000))};
            pass();
            act();
            check();
        }
    }
    // Ends all faults: each waiting program gets an answer, and the address is free in the end.
    void heal() {
        for (Program& each : programs) {
            each.stopped = false;
        }
        for (int step = 0; step < 400; ++step) {
            now = now + milliseconds(20);
            pass();
            check();
        }
        for (const Program& each : programs) {
            EXPECT_NE(each.state, Program::State::Asking);
            EXPECT_NE(each.state, Program::State::Lost);
        }
        while (!programs.empty()) {
            kill(0);
        }
        for (int step = 0; step < 400; ++step) {
            now = now + milliseconds(20);
            pass();
        }
        EXPECT_EQ(hub, nullptr);
        EXPECT_FALSE(kernel.is_taken());
    }

    Program* find(ClientId client) {
        const auto found =
            std::find_if(programs.begin(), programs.end(), [&](const Program& each) { return each.client == client; });
        return found == programs.end() ? nullptr : &*found;
    }
    void check() {
        std::set<unsigned> slots;
        std::set<wire::ServiceId> services;
        for (const Program& each : programs) {
            if (each.state == Program::State::Member || each.state == Program::State::Lost) {
                EXPECT_TRUE(slots.insert(each.slot.value).second) << "two have slot " << unsigned{each.slot.value};
                for (const wire::ServiceId service : each.services) {
                    EXPECT_TRUE(each.late || services.insert(service).second) << "two have one service";
                }
                EXPECT_EQ(kernel.at(each.slot.value), each.sockets.at(each.slot.value)) << "steered to another";
            }
        }
    }

    sim::Random random;
    Chances chances{};
    HubConfig config{};
    Instant now{seconds(10).ns};
    Kernel kernel;
    std::vector<Program> programs;
    std::unique_ptr<Broker> broker;
    std::unique_ptr<Hub> hub;
    std::vector<std::pair<Instant, ClientId>> losses;  // the broker notices them later
    Instant began_at{};                                // the hub
    std::uint32_t last_process = 0;
    std::uint64_t last_client = 0;
    std::uint64_t lent = 0, rejoined = 0, refused = 0, delivered = 0, claimed = 0;

private:
    void act() {
        if (random.chance(chances.start) && programs.size() < 20) {
            Program program;
            program.process = ++last_process;
            programs.push_back(program);
            ask(programs.back());
        }
        if (random.chance(chances.end) && !programs.empty()) {
            kill(random.below(programs.size()));
        }
        if (random.chance(chances.kill_broker) && hub != nullptr) {
            kill_broker();
        }
        if (random.chance(chances.stop) && !programs.empty()) {
            Program& one = programs[random.below(programs.size())];
            one.stopped = !one.stopped;
        }
        if (random.chance(chances.forward) && hub != nullptr) {
            forward();
        }
        if (random.chance(chances.forward) && !programs.empty()) {
            claim(programs[random.below(programs.size())]);
        }
    }
    void claim(Program& program) {
        const wire::ServiceId service{random.below(6)};
        if (program.state != Program::State::Member) {
            return;
        }
        if (program.services.erase(service) != 0) {
            hub->on_message(program.client, Release{service}, now);
        } else {
            hub->on_message(program.client, Claim{1, service, false}, now);
        }
    }
    void connect(Program& program) {
        if (hub == nullptr) {
            broker = std::make_unique<Broker>(*this, ++last_process);
            hub = std::make_unique<Hub>(*broker, net::IpAddress::from_v4(0x7f000001), config, now);
            began_at = now;
        }
        program.client = ClientId{++last_client};
        hub->on_connected(program.client, now);
    }
    void ask(Program& program) {
        program.unheard = false;
        connect(program);
        const ClientId client = program.client;
        hub->on_message(client, Join{}, now);
    }
    void come_back(Program& program) {
        connect(program);
        const ClientId client = program.client;
        const Rejoin said{program.slot, static_cast<std::uint16_t>(program.sockets.size())};
        hub->on_message(client, said, now);
        if (random.chance(20'000)) {
            kill_broker();  // during the call
            return;
        }
        program.late = program.late || now > began_at + config.patience;
        hub->on_message(client, Sockets{static_cast<std::uint16_t>(program.sockets.size())}, now);
        for (const wire::ServiceId service : program.services) {
            hub->on_message(client, Claim{0, service, false}, now);
        }
    }
    void kill(std::size_t which) {
        const Program gone = programs[which];
        programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(which));
        kernel.kill(gone.process);
        losses.emplace_back(now + random.between(Duration{}, milliseconds(50)), gone.client);
    }
    void kill_broker() {
        kernel.kill(broker->process);
        hub.reset();
        broker.reset();
        losses.clear();
        for (Program& each : programs) {
            if (each.state == Program::State::Member) {
                each.state = Program::State::Lost;
            }
            each.unheard = each.state == Program::State::Asking;
            each.back_at = now + random.between(Duration{}, milliseconds(100));
        }
    }
    void pass() {
        for (auto each = losses.begin(); each != losses.end();) {
            if (each->first <= now && hub != nullptr) {
                hub->on_lost(each->second, now);
                each = losses.erase(each);
            } else {
                ++each;
            }
        }
        if (hub != nullptr && hub->next_deadline() <= now) {
            hub->on_timeout(now);
            if (hub->is_over(now)) {
                kernel.kill(broker->process);
                hub.reset();
                broker.reset();
            }
        }
        for (std::size_t i = 0; i < programs.size(); ++i) {
            Program& each = programs[i];
            if (each.state == Program::State::Lost && !each.stopped && each.back_at <= now) {
                come_back(each);
            }
        }
        retry_asking();
    }
    // Lets a program whose broker died ask the next one.
    void retry_asking() {
        for (Program& each : programs) {
            if (each.unheard && !each.stopped && each.back_at <= now) {
                ask(each);
            }
        }
    }
    void forward() {
        std::array<std::uint8_t, 16> bytes{};
        const auto low = static_cast<std::uint8_t>(random.below(config.sockets + 2U));
        bytes[5] = 0x12;
        bytes[7] = low;
        Stray stray;
        stray.bytes = bytes;
        stray.index = low;
        hub->on_stray(stray);
    }
};

Instant Broker::read_clock() {
    return world.now;
}

Hands::Opening Broker::open() {
    if (world.kernel.is_taken()) {
        return Opening::Taken;
    }
    sockets.push_back(world.kernel.bind(process));
    return Opening::Open;
}

Hands::Growth Broker::grow() {
    const SocketId made = world.kernel.bind(process);
    if (world.kernel.at(sockets.size()) != made) {
        EXPECT_TRUE(others);
        world.kernel.close(made, process);
        return Growth::Hidden;
    }
    others = false;
    sockets.push_back(made);
    return Growth::Grown;
}

std::optional<std::uint16_t> Broker::adopt(ClientId client) {
    const Program& program = *world.find(client);
    others = others || program.sockets.size() > sockets.size();
    for (std::size_t i = 0; i < program.sockets.size(); ++i) {
        if (i < sockets.size()) {
            EXPECT_EQ(sockets[i], program.sockets[i]);
            continue;
        }
        sockets.push_back(program.sockets[i]);
        world.kernel.hold(program.sockets[i], process);
    }
    return static_cast<std::uint16_t>(sockets.size());
}

bool Broker::send(ClientId client, const Message& message) {
    Program* const program = world.find(client);
    if (program == nullptr) {
        return true;  // it is dead, and this was not noticed yet
    }
    if (const Lent* const lent = std::get_if<Lent>(&message)) {
        const bool back = program->state == Program::State::Lost;
        EXPECT_TRUE(!back || program->slot == lent->slot);
        program->slot = lent->slot;
        program->state = Program::State::Member;
        ++(back ? world.rejoined : world.lent);
    } else if (const Claimed* const claimed = std::get_if<Claimed>(&message)) {
        if (claimed->granted && program->state == Program::State::Member) {
            program->services.insert(claimed->service);
            ++world.claimed;
        }
    } else if (std::holds_alternative<Refused>(message)) {
        EXPECT_EQ(program->state, Program::State::Asking);
        program->state = Program::State::Refused;
        ++world.refused;
    } else {
        EXPECT_EQ(std::get<Stray>(message).index, program->slot.value);
        ++world.delivered;
    }
    return true;
}

bool Broker::send_sockets(ClientId client) {
    if (Program* const program = world.find(client)) {
        program->sockets = sockets;
        for (const SocketId socket : sockets) {
            world.kernel.hold(socket, program->process);
        }
    }
    return true;
}

void Broker::end(ClientId client) {
    if (Program* const program = world.find(client)) {
        EXPECT_EQ(program->state, Program::State::Refused);  // no other program is refused
    }
}

namespace {

TEST(BrokerWorld, ADatagramReachesItsProgramOrNobody) {
    std::uint64_t lent = 0;
    std::uint64_t rejoined = 0;
    std::uint64_t refused = 0;
    std::uint64_t delivered = 0;
    std::uint64_t claimed = 0;
    for (std::uint64_t seed = 1; seed <= 300 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        World world(seed);
        world.live(400);
        world.heal();
        lent += world.lent;
        rejoined += world.rejoined;
        refused += world.refused;
        delivered += world.delivered;
        claimed += world.claimed;
    }
    EXPECT_GT(lent, 1000U);  // these worlds have seen all cases
    EXPECT_GT(rejoined, 1000U);
    EXPECT_GT(refused, 100U);
    EXPECT_GT(delivered, 1000U);
    EXPECT_GT(claimed, 1000U);
}

}  // namespace
}  // namespace cairn::broker
