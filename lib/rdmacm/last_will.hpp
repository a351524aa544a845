// What the broker of the address says to peers should this process die.
#pragma once

#include "lib/broker/voice.hpp"
#include "lib/cm/last_words.hpp"

namespace cairn::rdmacm {

class LastWill {
public:
    // `voice`: nullptr, if there is no broker. It outlives this object.
    explicit LastWill(broker::Voice* voice) noexcept : voice_(voice) {}

    // The connection, if it is there and established, is to end with the process. `transaction` names its last message.
    void leave(const cm::Connection* connection, std::uint64_t transaction) {
        const auto words = voice_ == nullptr ? std::nullopt : cm::last_words(connection, transaction);
        if (words) {
            voice_->leave({connection->id.value, connection->route.remote, *words});
        }
    }
    // The connection has ended by itself.
    void revoke(cm::ConnectionId id) {
        if (voice_ != nullptr) {
            voice_->revoke(id.value);
        }
    }

private:
    broker::Voice* voice_;
};

}  // namespace cairn::rdmacm
