#include "lib/broker/voice.hpp"

#include <chrono>

#include "lib/broker/packets.hpp"

namespace cairn::broker {

// Waits for room: the broker reads what programs say before all else.
bool Voice::say(const Message& message) {
    return socket_ >= 0 && send_message(socket_, message, {}, true);
}

void Voice::manage() {
    const std::lock_guard hold(mutex_);
    manages_ = true;
    say(Manage{});
}

// mutants: broker-voice-claim
Parsed<wire::ServiceId, ClaimRefusal> Voice::claim(wire::ServiceId service, bool shares, Duration patience) {
    std::unique_lock hold(mutex_);
    const std::uint32_t ask = ++last_ask_ != 0 ? last_ask_ : ++last_ask_;
    const Claim& said = asked_[ask] = {ask, service, shares};
    say(said);
    answered_.wait_for(hold, std::chrono::nanoseconds(patience.ns), [&] { return answers_.count(ask) != 0; });
    asked_.erase(ask);
    const auto answer = answers_.find(ask);
    if (answer == answers_.end()) {
        return ClaimRefusal::NoAnswer;
    }
    const Claimed heard = answer->second;
    answers_.erase(answer);
    if (!heard.granted) {
        return ClaimRefusal::Taken;
    }
    claims_[service] = shares;
    return service;
}

void Voice::release(wire::ServiceId service) {
    const std::lock_guard hold(mutex_);
    claims_.erase(service);
    say(Release{service});
}

void Voice::leave(const Will& will) {
    const std::lock_guard hold(mutex_);
    wills_[will.name] = will;
    say(will);
}

void Voice::revoke(std::uint32_t name) {
    const std::lock_guard hold(mutex_);
    if (wills_.erase(name) != 0) {
        say(Revoke{name});
    }
}

// No answer is wanted to what was granted before. What waits for one is asked again.
// mutants: broker-voice-begin
bool Voice::begin(int socket) {
    const std::lock_guard hold(mutex_);
    socket_ = socket;
    bool heard = !manages_ || say(Manage{});
    for (const auto& [service, shares] : claims_) {
        heard = heard && say(Claim{0, service, shares});
    }
    for (const auto& [name, will] : wills_) {
        heard = heard && say(will);
    }
    for (const auto& [ask, claim] : asked_) {
        heard = heard && say(claim);
    }
    socket_ = heard ? socket : -1;
    return heard;
}

void Voice::end() {
    const std::lock_guard hold(mutex_);
    socket_ = -1;
}

// An answer that came too late gives back what nobody waits for.
// mutants: broker-voice-hear
void Voice::hear(const Claimed& said) {
    const std::lock_guard hold(mutex_);
    if (asked_.count(said.ask) != 0) {
        answers_[said.ask] = said;
        answered_.notify_all();
    } else if (said.granted) {
        say(Release{said.service});
    }
}

void Voice::lead(const Stray& stray) {
    const std::lock_guard hold(mutex_);
    if (socket_ >= 0) {
        (void)send_message(socket_, stray, {}, false);
    }
}

void Voice::say_farewell() {
    const std::lock_guard hold(mutex_);
    if (socket_ >= 0) {
        (void)send_message(socket_, Leave{}, {}, false);
    }
    socket_ = -1;
}

}  // namespace cairn::broker
