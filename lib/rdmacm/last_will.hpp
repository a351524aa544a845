// The farewells of this process: messages that the broker of its address sends to peers if the process dies.
#pragma once

#include "lib/broker/voice.hpp"
#include "lib/cm/last_words.hpp"

namespace cairn::rdmacm {

class LastWill {
public:
    // Keeps `voice`, which outlives it; nullptr if there is no broker.
    explicit LastWill(broker::Voice* voice) noexcept : voice_(voice) {}

    // Leaves a farewell for the connection, if it is there and established. `transaction` is that of its last message.
    void leave(const cm::Connection* connection, std::uint64_t transaction) {
        const auto words = voice_ == nullptr ? std::nullopt : cm::last_words(connection, transaction);
        if (words) {
            voice_->leave({connection->id.value, connection->route.remote, *words});
        }
    }
    // Withdraws the farewell of a connection that has ended by itself.
    void revoke(cm::ConnectionId id) {
        if (voice_ != nullptr) {
            voice_->revoke(id.value);
        }
    }

private:
    broker::Voice* voice_;
};

}  // namespace cairn::rdmacm
