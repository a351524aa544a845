#include "lib/broker/voice.hpp"

#include <atomic>
#include <chrono>

#include "lib/broker/packets.hpp"

namespace cairn::broker {

namespace {

constexpr int kSaidAtOnce = 64;  // messages, before others may have the lock

// The object whose lock this thread has, or is about to have. A signal handler on it looks at this.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::atomic<const Voice*> held_voice{nullptr};

}  // namespace

// A handler may interrupt the holder of one lock, take another one, and then come to the first.
class Voice::Held {
public:
    explicit Held(Voice& voice) : before_(held_voice.load(std::memory_order_relaxed)) {
        held_voice.store(&voice, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        lock_ = std::unique_lock(voice.mutex_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
        lock_.unlock();
        std::atomic_signal_fence(std::memory_order_seq_cst);
        held_voice.store(before_, std::memory_order_relaxed);
    }
    [[nodiscard]] std::unique_lock<std::mutex>& lock() noexcept { return lock_; }

private:
    const Voice* const before_;
    std::unique_lock<std::mutex> lock_;
};

bool Voice::is_closed() const noexcept {
    return is_mute_ || held_voice.load(std::memory_order_relaxed) == this;
}

// Sends messages until there is no room. Later ones wait after them.
void Voice::say_what_fits() {
    for (int said = 0; std::optional<Message> next = account_.next(); ++said) {
        if (said == kSaidAtOnce || !send_message(socket_, *next, {}, false)) {
            waits_for_room_ = true;
            return;
        }
        account_.on_said();
    }
}

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
    if (is_closed()) {
        return;
    }
    const Held hold(*this);
    account_.manage();
    speak();
}

Parsed<wire::ServiceId, ClaimRefusal> Voice::claim(wire::ServiceId service, bool shares, Duration patience) {
    if (is_closed()) {
        return ClaimRefusal::NoAnswer;
    }
    Held hold(*this);
    const std::uint32_t ask = account_.ask(service, shares);
    speak();
    answered_.wait_for(hold.lock(), std::chrono::nanoseconds(patience.ns), [&] { return account_.is_answered(ask); });
    const std::optional<bool> granted = account_.close(ask);
    speak();
    if (!granted) {
        return ClaimRefusal::NoAnswer;
    }
    return *granted ? Parsed<wire::ServiceId, ClaimRefusal>(service) : ClaimRefusal::Taken;
}

void Voice::release(wire::ServiceId service) {
    if (is_closed()) {
        return;
    }
    const Held hold(*this);
    account_.release(service);
    speak();
}

void Voice::leave(const Will& will) {
    if (is_closed()) {
        return;
    }
    const Held hold(*this);
    account_.leave(will);
    speak();
}

void Voice::revoke(std::uint32_t name) {
    if (is_closed()) {
        return;
    }
    const Held hold(*this);
    account_.revoke(name);
    speak();
}

void Voice::begin(int socket, Wakeup& sleeper) {
    const Held hold(*this);
    socket_ = socket;
    sleeper_ = &sleeper;
    waits_for_room_ = false;
    account_.begin();
    speak();
}

void Voice::end() {
    const Held hold(*this);
    socket_ = -1;
    waits_for_room_ = false;
}

bool Voice::waits_for_room() {
    const Held hold(*this);
    return waits_for_room_;
}

void Voice::go_on() {
    const Held hold(*this);
    waits_for_room_ = false;
    if (socket_ >= 0) {
        say_what_fits();
    }
}

void Voice::hear(const Claimed& said) {
    const Held hold(*this);
    account_.hear(said);
    answered_.notify_all();
    speak();
}

void Voice::lead(const Stray& stray) {
    const Held hold(*this);
    if (socket_ >= 0) {
        (void)send_message(socket_, stray, {}, false);
    }
}

// Sends a Leave if all messages were sent. The broker gets no more messages otherwise: a client that closes its
// connection has ended, too.
void Voice::say_farewell() {
    if (is_closed()) {
        return;
    }
    const Held hold(*this);
    if (socket_ >= 0 && !account_.next()) {
        (void)send_message(socket_, Leave{}, {}, false);
    }
    socket_ = -1;
}

}  // namespace cairn::broker
