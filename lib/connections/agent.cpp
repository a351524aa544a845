#include "lib/connections/agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/connections/home.hpp"

namespace cairn::connections {

// A message on its way to another worker. It belongs to its agent, which exists as long as a letter is under way.
class Agent::Letter final : public worker::Letter {
public:
    void write(const ArrivedMad& mad, WorkerNumber to, std::shared_ptr<Agent> agent) {
        to_ = to;
        by_ = mad.by;
        bytes_ = std::min(mad.bytes.size(), content_.size());
        std::memcpy(content_.data(), mad.bytes.data(), bytes_);
        agent_ = std::move(agent);
    }
    [[nodiscard]] WorkerNumber to() const noexcept { return to_; }
    [[nodiscard]] ArrivedMad mad() const noexcept { return {by_, std::span(content_).first(bytes_)}; }
    void open(worker::Worker& worker, Instant now) noexcept override {
        agent_->open(worker, *this, now);
        discard();
    }
    void discard() noexcept override {
        const std::shared_ptr<Agent> agent = std::move(agent_);  // this may be the last reference to the agent
        agent->take_back(*this);
    }

private:
    port::WayBack by_{};
    WorkerNumber to_ = 0;
    std::size_t bytes_ = 0;
    std::array<std::uint8_t, wire::kMadBytes> content_{};
    std::shared_ptr<Agent> agent_;
};

Agent::Agent(const SipKey& key) : services_(key) {
    for (std::size_t i = 0; i < kLetters; ++i) {
        letters_.push_back(std::make_unique<Letter>());
        free_.push_back(letters_.back().get());
    }
}

Agent::~Agent() = default;

Status Agent::add(Home& home, worker::Worker& worker) {
    const roce::EngineConfig& config = worker.config();
    const std::lock_guard hold(lock_);
    if (places_.size() <= config.owner) {
        places_.resize(std::size_t{config.owner} + 1);
    }
    if (places_[config.owner].home != nullptr) {
        return Error{worker.name() + " has connections already", "use one home for all users of a worker"};
    }
    const bool others = std::any_of(places_.begin(), places_.end(), [](const Place& each) { return each.home; });
    if (others && names_.bits != config.owner_bits) {
        return Error{fmt::format("{} has {} owner bits, others have {}", worker.name(), config.owner_bits, names_.bits),
                     "give all workers of an address the same"};
    }
    names_.bits = config.owner_bits;
    places_[config.owner].home = &home;
    places_[config.owner].address = worker.quiet_address();
    for (const Place& each : places_) {
        if (others && each.home != nullptr) {
            each.address.expect_mail();
        }
    }
    return Nothing{};
}

void Agent::remove(const worker::Worker& worker) noexcept {
    const std::lock_guard hold(lock_);
    places_[worker.config().owner].home = nullptr;
    places_[worker.config().owner].address = {};
}

WorkerNumber Agent::owner_of(std::uint32_t name) const noexcept {
    const std::lock_guard hold(lock_);
    return names_.owner_of(name);
}

Home* Agent::home_of(const worker::Worker& worker) const noexcept {
    const std::lock_guard hold(lock_);
    return worker.config().owner < places_.size() ? places_[worker.config().owner].home : nullptr;
}

// A message that cannot be parsed goes to this worker's own connections, which count it.
void Agent::on_mad(worker::Worker& from, const ArrivedMad& mad, Instant now) {
    const wire::ParsedMad<wire::CmMad> parsed = wire::CmMad::parse(mad.bytes);
    if (!parsed.ok()) {
        deliver(from, from.config().owner, mad, now);
        return;
    }
    const cm::Steering steering = cm::steer(parsed.value().message);
    if (const auto* const named = std::get_if<cm::ToNamed>(&steering)) {
        deliver(from, owner_of(named->name), mad, now);
    } else if (const auto* const listener = std::get_if<cm::ToListener>(&steering)) {
        // Without a listener, this worker answers that there is none.
        deliver(from, services_.find(*listener, mad.by.key.remote).value_or(from.config().owner), mad, now);
    } else {
        std::size_t workers = 0;
        {
            const std::lock_guard hold(lock_);
            workers = places_.size();
        }
        for (std::size_t i = 0; i < workers; ++i) {
            deliver(from, static_cast<WorkerNumber>(i), mad, now);
        }
    }
}

void Agent::deliver(worker::Worker& from, WorkerNumber to, const ArrivedMad& mad, Instant now) {
    if (to == from.config().owner) {
        if (Home* const own = home_of(from)) {
            own->on_mad(mad, now);
        } else {
            counters_.count_shared(AgentCounter::NoHome);
        }
        return;
    }
    worker::Address address;
    Letter* letter = nullptr;
    {
        const std::lock_guard hold(lock_);
        if (to < places_.size() && places_[to].home != nullptr) {
            address = places_[to].address;
            letter = take_letter(to);
        } else {
            to = from.config().owner;
        }
    }
    if (to == from.config().owner) {  // the name is of an earlier life or invented: it is answered as unknown
        counters_.count_shared(AgentCounter::NoHome);
        deliver(from, to, mad, now);
        return;
    }
    if (letter == nullptr) {
        counters_.count_shared(AgentCounter::MailFull);
        return;
    }
    letter->write(mad, to, shared_from_this());
    if (address.send(*letter).ok()) {
        counters_.count_shared(AgentCounter::HandedOver);
    } else {
        letter->discard();
        counters_.count_shared(AgentCounter::NoHome);
    }
}

void Agent::open(worker::Worker& worker, const Letter& letter, Instant now) {
    if (Home* const home = home_of(worker)) {
        home->on_mad(letter.mad(), now);
    } else {
        counters_.count_shared(AgentCounter::NoHome);
    }
}

// Returns nullptr beyond the worker's share. So a worker that does not turn leaves the others their shares.
Agent::Letter* Agent::take_letter(WorkerNumber to) noexcept {
    if (free_.empty() || places_[to].letters >= kLetters / places_.size()) {
        return nullptr;
    }
    Letter* const letter = free_.back();
    free_.pop_back();
    ++places_[to].letters;
    return letter;
}

void Agent::take_back(Letter& letter) noexcept {
    const std::lock_guard hold(lock_);
    --places_[letter.to()].letters;
    free_.push_back(&letter);
}

}  // namespace cairn::connections
