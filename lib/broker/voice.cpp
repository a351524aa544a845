#include "lib/broker/voice.hpp"

#include <chrono>

#include "lib/broker/packets.hpp"

namespace cairn::broker {

namespace {

constexpr int kSaidAtOnce = 64;  // messages, before others may have the lock

}  // namespace

// Until there is no room. What comes up from then on waits behind that.
// mutants: broker-voice-say-what-fits
void Voice::say_what_fits() {
    for (int said = 0; std::optional<Message> next = account_.next(); ++said) {
        if (said == kSaidAtOnce || !send_message(socket_, *next, {}, false)) {
            waits_for_room_ = true;
            return;
        }
        account_.on_said();
    }
}

// mutants: broker-voice-speak
void Voice::speak() {
    if (socket_ < 0 || waits_for_room_) {
        return;
    }
    say_what_fits();
    if (waits_for_room_) {
        sleeper_->wake();
    }
}

void Voice::manage() {
    if (is_mute_) {
        return;
    }
    const std::lock_guard hold(mutex_);
    account_.manage();
    speak();
}

Parsed<wire::ServiceId, ClaimRefusal> Voice::claim(wire::ServiceId service, bool shares, Duration patience) {
    if (is_mute_) {
        return ClaimRefusal::NoAnswer;
    }
    std::unique_lock hold(mutex_);
    const std::uint32_t ask = account_.ask(service, shares);
    speak();
    answered_.wait_for(hold, std::chrono::nanoseconds(patience.ns), [&] { return account_.is_answered(ask); });
    const std::optional<bool> granted = account_.close(ask);
    speak();
    if (!granted) {
        return ClaimRefusal::NoAnswer;
    }
    return *granted ? Parsed<wire::ServiceId, ClaimRefusal>(service) : ClaimRefusal::Taken;
}

void Voice::release(wire::ServiceId service) {
    if (is_mute_) {
        return;
    }
    const std::lock_guard hold(mutex_);
    account_.release(service);
    speak();
}

void Voice::leave(const Will& will) {
    if (is_mute_) {
        return;
    }
    const std::lock_guard hold(mutex_);
    account_.leave(will);
    speak();
}

void Voice::revoke(std::uint32_t name) {
    if (is_mute_) {
        return;
    }
    const std::lock_guard hold(mutex_);
    account_.revoke(name);
    speak();
}

void Voice::begin(int socket, Wakeup& sleeper) {
    const std::lock_guard hold(mutex_);
    socket_ = socket;
    sleeper_ = &sleeper;
    waits_for_room_ = false;
    account_.begin();
    speak();
}

void Voice::end() {
    const std::lock_guard hold(mutex_);
    socket_ = -1;
    waits_for_room_ = false;
}

bool Voice::waits_for_room() {
    const std::lock_guard hold(mutex_);
    return waits_for_room_;
}

void Voice::go_on() {
    const std::lock_guard hold(mutex_);
    waits_for_room_ = false;
    if (socket_ >= 0) {
        say_what_fits();
    }
}

void Voice::hear(const Claimed& said) {
    const std::lock_guard hold(mutex_);
    account_.hear(said);
    answered_.notify_all();
    speak();
}

void Voice::lead(const Stray& stray) {
    const std::lock_guard hold(mutex_);
    if (socket_ >= 0) {
        (void)send_message(socket_, stray, {}, false);
    }
}

// The broker hears of what is unsaid no more: who hangs up has ended, too.
void Voice::say_farewell() {
    if (is_mute_) {
        return;
    }
    const std::lock_guard hold(mutex_);
    if (socket_ >= 0 && !account_.next()) {
        (void)send_message(socket_, Leave{}, {}, false);
    }
    socket_ = -1;
}

}  // namespace cairn::broker
