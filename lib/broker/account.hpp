// Account: what a program has that its broker is to know, and what of it the broker has not been told yet.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "lib/broker/messages.hpp"

namespace cairn::broker {

// What one message is about. Of each there is one thing to say at most: how it is now.
struct Topic {
    enum class Kind : std::uint8_t { Manager, Service, Connection, Question };
    Kind kind{};
    std::uint64_t name = 0;

    friend auto operator<=>(const Topic&, const Topic&) noexcept = default;
};

// Topics in the order in which they came up.
class Backlog {
public:
    // Keeps its place if it is there.
    void add(const Topic& topic);
    void remove(const Topic& topic);
    void clear();
    // nullptr: there is none.
    [[nodiscard]] const Topic* first() const noexcept {
        return in_order_.empty() ? nullptr : &in_order_.begin()->second;
    }

private:
    std::map<Topic, std::uint64_t> places_;
    std::map<std::uint64_t, Topic> in_order_;
    std::uint64_t last_place_ = 0;
};

// It uses no I/O, lock or clock. It is as large as what the program has, and what the broker was told of and is to
// forget.
class Account {
public:
    // These change what the program has: see Voice.
    void manage();
    void leave(const Will& will);
    void revoke(std::uint32_t name);
    void release(wire::ServiceId service);
    // Returns the name of the question. The service is the program's once hear() has a grant.
    [[nodiscard]] std::uint32_t ask(wire::ServiceId service, bool shares);
    void hear(const Claimed& said);
    // Returns whether the question is answered by now.
    [[nodiscard]] bool is_answered(std::uint32_t ask) const { return questions_.at(ask).granted.has_value(); }
    // Nobody waits for the answer any more. Returns it; nothing: it has not come. If it comes, it is undone.
    std::optional<bool> close(std::uint32_t ask);

    // There is another broker, which knows nothing.
    void begin();
    // What is to be said next; nothing: the broker knows all. The same until on_said().
    [[nodiscard]] std::optional<Message> next() const;
    void on_said();

private:
    template <class Value>
    struct Fact {
        std::optional<Value> value{};  // nothing: the broker is to forget it
        bool is_known = false;         // the broker has been told of it, or may know
    };
    struct Question {
        Claim claim{};
        std::optional<bool> granted{};
        bool in_doubt = false;  // if it is not granted, the broker is told how it is with the service
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
