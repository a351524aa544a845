#include "pmd_glue/generator.hpp"

#include <algorithm>

namespace cairn::pmd {

Generator::Generator(const GeneratorConfig& config, port::Port& port, Emitter& emitter)
    : config_(config), port_(port), emitter_(emitter) {}

Generator::~Generator() {
    if (path_ != nullptr) {
        path_->unpin();
    }
}

bool Generator::run_turn(Instant now) noexcept {
    if (path_ == nullptr) {
        path_ = port_.open_path(config_.path, now);
        opened_ = now;
        if (path_ != nullptr) {
            path_->pin();
        }
    }
    port_.on_timeout(now);
    const bool received = receive(now);
    linger(now, received);
    return (path_ != nullptr && path_->resolved() && send_due(now)) || received;
}

// Waits for late answers. If the machine stood still, so did the peers that answer: that time does not count.
void Generator::linger(Instant now, bool received) noexcept {
    lingered_ = received || !all_sent() ? Duration{} : lingered_ + std::min(now - last_turn_, kLongestWait);
    last_turn_ = now;
}

bool Generator::send_due(Instant now) noexcept {
    if (all_sent()) {
        return false;
    }
    if (serial_ == 0 && first_sent_.ns == 0) {
        first_sent_ = now;
    }
    const double elapsed_s = static_cast<double>((now - first_sent_).ns) / 1e9;
    auto due = static_cast<std::uint64_t>(elapsed_s * config_.rate_pps) + 1;
    due = config_.count != 0 ? std::min(due, config_.count) : due;
    if (due <= serial_) {
        return false;
    }
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(due - serial_, kBurst));
    const std::size_t sent = emitter_.emit(*path_, serial_, wanted, now);
    serial_ += sent;
    last_sent_ = now;
    counters_.count(GeneratorCounter::Sent, sent);
    counters_.count(GeneratorCounter::Refused, sent < wanted ? 1 : 0);
    return true;
}

bool Generator::receive(Instant now) noexcept {
    const std::size_t got = port_.receive_burst(burst_, now);
    for (const port::PacketRef& packet : std::span(burst_).first(got)) {
        counters_.count(GeneratorCounter::Returned);
        counters_.count(GeneratorCounter::ReturnedBytes, packet.len);
        counters_.count(GeneratorCounter::ReturnedBroken, packet.icrc_ok ? 0 : 1);
    }
    port_.release_burst(std::span(burst_).first(got));
    return got != 0;
}

bool Generator::finished(Instant now) const noexcept {
    if (!neighbour_answered()) {
        return path_ != nullptr && now - opened_ >= config_.give_up;
    }
    return all_sent() && lingered_ >= config_.linger;
}

void Generator::wait(Instant now) noexcept {
    if (!can_wait()) {
        worker::Task::wait(now);
        return;
    }
    const Duration next{static_cast<std::int64_t>(static_cast<double>(serial_) * 1e9 / config_.rate_pps)};
    port_.wait(all_sent() || !neighbour_answered() ? kLongestWait : std::min(first_sent_ + next - now, kLongestWait),
               -1);
}

double Generator::seconds_sending() const noexcept {
    return static_cast<double>((last_sent_ - first_sent_).ns) / 1e9;
}

}  // namespace cairn::pmd
