// Measures the round trip of a short message over a connection of Cairn: the floor of a call on connections. Two
// processes on the two ends of a link, both spinning:
//
//   verbs_ruler EAL... -- echo                   until a signal
//   verbs_ruler EAL... -- write_imm SECONDS      prints one JSON object
//   verbs_ruler EAL... -- send SECONDS           prints one JSON object
//
// write_imm WRITEs with an immediate, and its receive requests name no memory. send SENDs inline bytes into posted
// buffers. One message is under way; sends make no completions, and receive requests are posted many at a time. Each
// message has a number, which is looked at where it arrives.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/common/ports.hpp"
#include "apps/common/worker_program.hpp"
#include "lib/base/secret.hpp"
#include "lib/verbs/connector.hpp"
#include "pmd_glue/lcores.hpp"
#include "tests/rulers/round_trips.hpp"
#include "tests/rulers/verbs_end.hpp"

namespace {

using namespace cairn;
using ruler::End;
using ruler::RawGreeting;
using ruler::Way;

constexpr const char* kEchoAddress = "10.77.0.1";
constexpr const char* kAskingAddress = "10.77.0.2";
constexpr std::uint16_t kService = 7473;
constexpr Duration kPatience = seconds(5);

verbs::ConnectionChoice choice_with(const RawGreeting& greeting) noexcept {
    verbs::ConnectionChoice choice;
    choice.access = verbs::Rights{verbs::Right::RemoteWrite};
    choice.private_data = ruler::bytes_of(greeting);
    return choice;
}

// The common part of both ends.
class Ruler : public app::WorkerProgram {
public:
    Status open(Instant now) {
        roce::EngineConfig engine;
        engine.max_queue_pairs = 4;
        engine.max_regions = 8;
        engine.seed = draw_secret();
        const Status opened = open_worker(engine, now);
        if (!opened.ok()) {
            return opened;
        }
        device_ = std::make_unique<verbs::Device>(worker());
        auto home = connections::Home::create(connections::Agent::create(), worker(), {});
        if (!home.ok()) {
            return home.error();
        }
        home_ = std::move(home).value();
        connector_ = std::make_unique<verbs::Connector>(*device_, *home_);
        const Status ready = prepare(now);
        join();
        return ready;
    }
    [[nodiscard]] bool failed() const noexcept { return failed_; }

protected:
    explicit Ruler(std::unique_ptr<port::Port> port) : WorkerProgram(std::move(port)) {}
    // Queue pairs outlive their connections.
    ~Ruler() override {
        connector_.reset();
        end_.reset();
    }
    virtual Status prepare(Instant now) = 0;
    virtual void on_event(const cm::Event& event, Instant now) = 0;
    virtual void on_message(std::uint32_t number, Instant now) = 0;
    void fail(std::string_view why) {
        if (!failed_) {
            fmt::print(stderr, "verbs_ruler: {}\n", why);
        }
        failed_ = true;
    }
    [[nodiscard]] verbs::Device& device() noexcept { return *device_; }
    [[nodiscard]] verbs::Connector& connector() noexcept { return *connector_; }

    std::unique_ptr<End> end_;

private:
    bool on_turn(Instant now) noexcept override {
        bool worked = false;
        while (const std::optional<cm::Event> event = connector_->poll_event()) {
            on_event(*event, now);
            worked = true;
        }
        while (end_ != nullptr) {
            const std::optional<std::uint32_t> number = end_->take();
            if (!number) {
                break;
            }
            on_message(*number, now);
            worked = true;
        }
        return worked;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }

    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Connector> connector_;
    bool failed_ = false;
};

// Serves one connection at a time, either way, until a signal.
class Echo final : public Ruler {
public:
    explicit Echo(std::unique_ptr<port::Port> port) : Ruler(std::move(port)) {}
    [[nodiscard]] bool finished(Instant) const noexcept override { return false; }

private:
    Status prepare(Instant) override { return connector().listen(kService, 1); }
    void on_event(const cm::Event& event, Instant now) override {
        if (const auto* requested = std::get_if<cm::Requested>(&event)) {
            admit(*requested, now);
        } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&event)) {
            (void)connector().disconnect(leaving->id, {}, now);
        } else if (end_ != nullptr && std::holds_alternative<cm::Released>(event)) {
            end_.reset();
        } else if (std::holds_alternative<cm::Unreachable>(event) || std::holds_alternative<cm::Rejected>(event)) {
            connector().abandon(id_, now);
            end_.reset();
        }
    }
    void admit(const cm::Requested& requested, Instant now) {
        const std::optional<RawGreeting> peer = ruler::greeting_in(requested.private_data);
        auto made = end_ == nullptr && peer ? End::create(device(), static_cast<Way>(peer->way))
                                            : Result<std::unique_ptr<End>>(Error{"one connection is enough", ""});
        if (made.ok()) {
            const RawGreeting own = made.value()->greeting();
            made.value()->meet(*peer);
            if (connector().accept(requested.id, made.value()->qp(), choice_with(own), now).ok() &&
                made.value()->refill()) {
                id_ = requested.id;
                end_ = std::move(made).value();
                return;
            }
        }
        (void)connector().reject(requested.id, {}, now);
    }
    void on_message(std::uint32_t number, Instant) override {
        if (!end_->send(number)) {
            fail("an answer found no room");
        }
    }

    verbs::ConnectionId id_{};
};

class Asking final : public Ruler {
public:
    Asking(std::unique_ptr<port::Port> port, Way way, double seconds_to_measure)
        : Ruler(std::move(port)), way_(way), measured_{static_cast<std::int64_t>(seconds_to_measure * 1e9)} {
        round_trips_us.reserve(std::size_t{1} << 22U);
    }
    [[nodiscard]] bool finished(Instant now) const noexcept override {
        return failed() || over_ || end_->broken() || now - sent_at_ > kPatience;
    }
    [[nodiscard]] bool over() const noexcept { return over_; }

    std::vector<double> round_trips_us;

private:
    Status prepare(Instant now) override {
        auto made = End::create(device(), way_);
        if (!made.ok()) {
            return made.error();
        }
        end_ = std::move(made).value();
        const RawGreeting own = end_->greeting();
        verbs::ConnectTo to;
        to.remote = net::IpAddress::parse(kEchoAddress).value();
        to.port = kService;
        to.choice = choice_with(own);
        const Result<verbs::ConnectionId> asked = connector().connect(end_->qp(), to, now);
        if (!asked.ok()) {
            return asked.error();
        }
        id_ = asked.value();
        sent_at_ = now;
        return Nothing{};
    }
    void on_event(const cm::Event& event, Instant now) override {
        if (const auto* established = std::get_if<cm::Established>(&event)) {
            const std::optional<RawGreeting> peer = ruler::greeting_in(established->private_data);
            if (!peer || !end_->refill()) {
                fail("the other end is no echo");
                return;
            }
            end_->meet(*peer);
            until_ = now + measured_;
            ask(now);
        } else if (std::holds_alternative<cm::Disconnected>(event)) {
            over_ = true;
        } else if (std::holds_alternative<cm::Rejected>(event) || std::holds_alternative<cm::Unreachable>(event)) {
            fail("there is no echo at the other end that is free");
        }
    }
    void ask(Instant now) {
        sent_at_ = now;
        if (!end_->send(++number_)) {
            fail("a message found no room");
        }
    }
    // Turns begin when their time is read, so both times belong to the same moment of a turn.
    void on_message(std::uint32_t number, Instant now) override {
        if (number != number_) {
            fail("an answer came that was not asked for");
            return;
        }
        round_trips_us.push_back(static_cast<double>((now - sent_at_).ns) / 1e3);
        if (now < until_) {
            ask(now);
        } else if (!connector().disconnect(id_, {}, now).ok()) {
            over_ = true;
        }
    }

    Way way_;
    Duration measured_;
    Instant until_{};
    Instant sent_at_{};
    std::uint32_t number_ = 0;
    verbs::ConnectionId id_{};
    bool over_ = false;
};

Result<int> measure(Asking& asking, std::span<worker::Task* const> tasks, const pmd::Clock& clock) {
    pmd::run_workers(tasks, clock, worker::Polling::Spin);
    if (!asking.over() || asking.failed() || asking.round_trips_us.empty()) {
        return Error{"no answers came", "start an echo at the other end of the link first"};
    }
    fmt::print(stderr, "{} round trips\n{}", asking.round_trips_us.size(),
               std::as_const(asking).worker().counters().text());
    print_round_trips(asking.round_trips_us);
    return 0;
}

Result<int> run(int argc, char** argv, int first) {
    const std::string_view mode = first < argc ? argv[first] : "";
    const bool echoes = mode == "echo" && argc == first + 1;
    const double seconds_given = argc == first + 2 ? std::strtod(argv[first + 1], nullptr) : 0;
    if (!echoes && ((mode != "write_imm" && mode != "send") || seconds_given <= 0)) {
        return Error{"its arguments are not understood", "give EAL... -- echo, or -- write_imm|send SECONDS"};
    }
    app::PortOptions wanted;
    wanted.ip = echoes ? kEchoAddress : kAskingAddress;
    auto opened = app::Ports::open(wanted);
    if (!opened.ok()) {
        return opened.error();
    }
    auto port = opened.value().make_port(0);
    if (!port.ok()) {
        return port.error();
    }
    const pmd::Clock clock;
    if (echoes) {
        Echo echo(std::move(port).value());
        const Status ready = echo.open(clock.now());
        if (!ready.ok()) {
            return ready.error();
        }
        const std::array<worker::Task*, 1> tasks{&echo};
        pmd::run_workers(tasks, clock, worker::Polling::Spin);
        return echo.failed() ? 1 : 0;
    }
    Asking asking(std::move(port).value(), mode == "send" ? Way::Send : Way::WriteImmediate, seconds_given);
    const Status ready = asking.open(clock.now());
    const std::array<worker::Task*, 1> tasks{&asking};
    return ready.ok() ? measure(asking, tasks, clock) : Result<int>(ready.error());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("verbs_ruler", argc, argv, run);
}
