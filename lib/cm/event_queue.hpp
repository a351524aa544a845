// Events on their way to their users.
#pragma once

#include <deque>
#include <optional>
#include <type_traits>
#include <variant>

#include "lib/cm/events.hpp"

namespace cairn::cm {

class User;

struct AddressedEvent {
    Event event;
    User* user = nullptr;  // nullptr: the driver of the manager
};

class EventQueue {
public:
    void push(User* user, const Event& event) { waiting_.push_back({event, user}); }
    [[nodiscard]] std::optional<AddressedEvent> pop() {
        if (waiting_.empty()) {
            return std::nullopt;
        }
        const AddressedEvent first = waiting_.front();
        waiting_.pop_front();
        return first;
    }
    // Removes the events of the connection.
    void forget(ConnectionId id) {
        std::erase_if(waiting_, [id](const AddressedEvent& each) { return is_of(each.event, id); });
    }
    // Removes the events of the questions and services over datagrams of a user that ends.
    void forget_datagrams(const User& user) {
        std::erase_if(waiting_, [&user](const AddressedEvent& each) {
            return each.user == &user && (std::holds_alternative<Resolved>(each.event) ||
                                          std::holds_alternative<DatagramRequested>(each.event));
        });
    }

private:
    std::deque<AddressedEvent> waiting_;
};

}  // namespace cairn::cm
