// Finds the manager that a message is for, if a host has several (see NameShare).
#pragma once

#include <type_traits>
#include <variant>

#include "lib/wire/cm_message.hpp"

namespace cairn::cm {

enum class ServiceKind : std::uint8_t { Connections, Datagrams };

// For the manager that drew the name.
struct ToNamed {
    std::uint32_t name = 0;

    friend bool operator==(const ToNamed&, const ToNamed&) noexcept = default;
};
// For a manager that listens to the service. `peer_name` is the peer's name for the request; its copies have the same.
struct ToListener {
    ServiceKind kind{};
    wire::ServiceId service{};
    std::uint32_t peer_name = 0;

    friend bool operator==(const ToListener&, const ToListener&) noexcept = default;
};
// For all managers: the message names nothing of ours, since the peer gave up before it knew our name. Each manager
// checks if it is meant.
struct ToAll {
    friend bool operator==(const ToAll&, const ToAll&) noexcept = default;
};
using Steering = std::variant<ToNamed, ToListener, ToAll>;

// Reads the name in the message. A pure function.
[[nodiscard]] inline Steering steer(const wire::CmMessage& message) noexcept {
    return std::visit(
        []<class Message>(const Message& said) -> Steering {
            if constexpr (std::is_same_v<Message, wire::Req>) {
                return ToListener{ServiceKind::Connections, said.service_id, said.local_comm_id.value};
            } else if constexpr (std::is_same_v<Message, wire::SidrReq>) {
                return ToListener{ServiceKind::Datagrams, said.service_id, said.request_id.value};
            } else if constexpr (std::is_same_v<Message, wire::SidrRep>) {
                return ToNamed{said.request_id.value};
            } else if constexpr (std::is_same_v<Message, wire::Rej>) {
                return said.ids.remote == wire::CommId{} ? Steering(ToAll{}) : Steering(ToNamed{said.ids.remote.value});
            } else {
                return ToNamed{said.ids.remote.value};
            }
        },
        message);
}

}  // namespace cairn::cm
