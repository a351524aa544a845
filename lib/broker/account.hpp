// The state of a program that its broker is to know, and the part of it that the broker does not know yet.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "lib/broker/messages.hpp"

namespace cairn::broker {

// The subject of a message. Each has at most one message to be sent, with its present state.
struct Topic {
    enum class Kind : std::uint8_t { Manager, Service, Connection, Question };
    Kind kind{};
    std::uint64_t name = 0;

    friend auto operator<=>(const Topic&, const Topic&) noexcept = default;
};

// Topics in the order in which they were added.
class Backlog {
public:
    // Adds the topic. It keeps its place if it is there.
    void add(const Topic& topic);
    void remove(const Topic& topic);
    void clear();
    // Returns the first topic; nullptr if there is none.
    [[nodiscard]] const Topic* first() const noexcept {
        return in_order_.empty() ? nullptr : &in_order_.begin()->second;
    }

private:
    std::map<Topic, std::uint64_t> places_;
    std::map<std::uint64_t, Topic> in_order_;
    std::uint64_t last_place_ = 0;
};

// Uses no I/O, lock or clock. Its size is bounded by the program's state and the facts that the broker knows and is to
// forget.
class Account {
public:
    // These change the program's state: see Voice.
    void manage();
    void leave(const Will& will);
    void revoke(std::uint32_t name);
    void release(wire::ServiceId service);
    // Asks for the service, and returns the name of the question. The service is the program's once hear() has a grant.
    [[nodiscard]] std::uint32_t ask(wire::ServiceId service, bool shares);
    void hear(const Claimed& said);
    // Returns whether the question is answered by now.
    [[nodiscard]] bool is_answered(std::uint32_t ask) const { return questions_.at(ask).granted.has_value(); }
    // Closes a question that is not waited for any more. Returns the answer; nullopt if it has not come. A grant that
    // comes later is undone.
    std::optional<bool> close(std::uint32_t ask);

    // Begins anew with another broker, which knows nothing.
    void begin();
    // Returns the message to be sent next; nullopt if the broker knows all. It is the same one until on_said().
    [[nodiscard]] std::optional<Message> next() const;
    void on_said();

private:
    template <class Value>
    struct Fact {
        std::optional<Value> value{};  // nullopt: the broker is to forget it
        bool is_known = false;         // the broker knows it, or may know it
    };
    struct Question {
        Claim claim{};
        std::optional<bool> granted{};
        bool in_doubt = false;  // if it is not granted, the broker gets the present state of the service
    };

    void settle(wire::ServiceId service);

    std::uint32_t last_ask_ = 0;
    bool manages_ = false;
    std::map<wire::ServiceId, Fact<bool>> services_;   // with whether it is shared
    std::map<std::uint32_t, Fact<Will>> connections_;  // by name
    std::map<std::uint32_t, Question> questions_;      // by ask
    Backlog backlog_;
};

}  // namespace cairn::broker
