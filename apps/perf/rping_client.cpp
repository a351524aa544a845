// The client of the rping exchange.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <variant>

#include "apps/perf/rping.hpp"

namespace cairn::perf {

namespace {

constexpr unsigned kSource = 0;
constexpr unsigned kSink = 1;

// Writes the text as rping does: "rdma-ping-N: " and letters, beginning with another letter each time, up to a final
// zero.
void write_text(std::span<std::uint8_t> text, std::uint64_t number) {
    constexpr unsigned kFirst = 'A';
    constexpr unsigned kLetters = 'z' - kFirst + 1;
    const std::string start = fmt::format("rdma-ping-{}: ", number);
    const std::size_t begun = std::min(start.size(), text.size());
    std::copy_n(start.begin(), begun, text.begin());
    for (std::size_t i = begun; i < text.size(); ++i) {
        text[i] = static_cast<std::uint8_t>(kFirst + (number + i - begun) % kLetters);
    }
    text.back() = 0;
}

}  // namespace

RpingClient::~RpingClient() {
    close_connections();
}

Status RpingClient::prepare(Instant now) {
    auto way = device().create_ah(peer_, port::kFirstUdpSourcePort, now);
    auto completions = device().create_cq(64);
    if (!way.ok() || !completions.ok()) {
        return way.ok() ? completions.error() : way.error();
    }
    way_ = std::move(way).value();
    completions_ = std::move(completions).value();
    auto end = PingEnd::create(device(), pd(), *completions_, options().message_bytes);
    if (!end.ok()) {
        return end.error();
    }
    end_ = std::move(end).value();
    start_at_ = progress_at_ = now + kNeighbour;
    return Nothing{};
}

bool RpingClient::step(Instant now) {
    if (!asked_ && now >= start_at_) {
        asked_ = true;
        verbs::ConnectTo to;
        to.remote = peer_;
        to.port = options().service_port;
        to.path_mtu_bytes = own_path_mtu();
        to.choice = choice({});
        const Result<verbs::ConnectionId> asked = connector().connect(end_->qp(), to, now);
        if (!asked.ok()) {
            fail(asked.error().text());
            return false;
        }
        id_ = asked.value();
    }
    std::array<verbs::Completion, 16> done;
    const std::size_t count = completions_->poll(done);
    for (const verbs::Completion& completion : std::span(done).first(count)) {
        if (stage_ == Stage::Leaving) {
            continue;
        }
        if (completion.status != verbs::CompletionStatus::Success) {
            fail(text_of(completion.status));
        } else if (completion.opcode == verbs::CompletionOpcode::Receive) {
            on_go_on(now);
        }
    }
    return count != 0;
}

void RpingClient::on_event(const cm::Event& event, Instant now) {
    if (std::holds_alternative<cm::Established>(event)) {
        start_ping(now);
    } else if (const auto* rejected = std::get_if<cm::Rejected>(&event)) {
        fail(fmt::format("{} refused the connection to port {} (reason {})", peer_.text(), options().service_port,
                         static_cast<unsigned>(rejected->reason)));
    } else if (std::holds_alternative<cm::Unreachable>(event)) {
        fail(fmt::format("{} does not answer; is the server running?", peer_.text()));
    } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&event)) {
        (void)connector().disconnect(leaving->id, {}, now);
        fail("the server ended the connection");
    } else if (std::holds_alternative<cm::Disconnected>(event)) {
        over_at_ = now;
    }
}

void RpingClient::start_ping(Instant now) {
    pinged_at_ = progress_at_ = now;
    stage_ = Stage::Offered;
    write_text(end_->text(kSource), pings_);
    if (!end_->post_receive(0) || !end_->tell(end_->offer_of(kSource), 0)) {
        fail("the connection ended");
    }
}

// Goes on after the server's SEND: it has read the source or written the sink.
void RpingClient::on_go_on(Instant now) {
    progress_at_ = now;
    if (stage_ == Stage::Offered) {
        stage_ = Stage::Awaits;
        if (!end_->post_receive(0) || !end_->tell(end_->offer_of(kSink), 0)) {
            fail("the connection ended");
        }
        return;
    }
    const std::span<const std::uint8_t> source = end_->text(kSource);
    if (options().check && !std::equal(source.begin(), source.end(), end_->text(kSink).begin())) {
        fail(fmt::format("ping {} came back changed", pings_));
        return;
    }
    ++pings_;
    round_trip_ns_.record(static_cast<std::uint64_t>((now - pinged_at_).ns));
    if (pings_ < options().pings) {
        start_ping(now);
        return;
    }
    stage_ = Stage::Leaving;
    if (!connector().disconnect(id_, {}, now).ok()) {
        over_at_ = now;
    }
}

void RpingClient::look(Instant now) {
    show(PerfCounter::Completed, pings_);
    if (!failed() && now - progress_at_ > kSilence) {
        fail(stage_ == Stage::Connecting ? "no connection came about for 10 s; is the server running?"
                                         : "the server was silent for 10 s; is it still running?");
    }
}

std::string RpingClient::json() const {
    return fmt::format(
        "{{\"test\":\"rping\",\"pings\":{},\"size_bytes\":{},\"p50_us\":{:.3f},\"p99_us\":{:.3f},\"max_us\":{:.3f},"
        "\"checked\":{}}}",
        pings_, options().message_bytes, us(round_trip_ns_, 0.5), us(round_trip_ns_, 0.99), us(round_trip_ns_, 1),
        options().check ? pings_ : 0);
}

std::string RpingClient::table() const {
    return fmt::format(" pings: {}, of {} bytes{}\n round trip: p50 {:.2f}, p99 {:.2f}, max {:.2f} us\n", pings_,
                       options().message_bytes, options().check ? ", verified" : "", us(round_trip_ns_, 0.5),
                       us(round_trip_ns_, 0.99), us(round_trip_ns_, 1));
}

}  // namespace cairn::perf
