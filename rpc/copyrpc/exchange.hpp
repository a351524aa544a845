// Receives and sends the batches of all sessions.
#pragma once

#include <array>

#include "rpc/copyrpc/peers.hpp"

namespace cairn::copyrpc {

// All references outlive the object.
class Exchange {
public:
    Exchange(Queues& queues, Sessions& sessions, Peers& peers, rpc::Links& links, Client& client, Server& server,
             OneSided& one_sided, const HoldConfig& hold, Statistics& statistics) noexcept
        : queues_(queues),
          sessions_(sessions),
          peers_(peers),
          links_(links),
          client_(client),
          server_(server),
          one_sided_(one_sided),
          hold_(hold),
          statistics_(statistics) {}

    // Reads the batches that came, and finds out which sends failed. Handlers and completions run. Returns true if
    // there was a batch.
    bool take(Instant now) noexcept;
    // Sends what the sessions have for their peers. Returns true if there was something to send.
    bool flush(Instant now) noexcept;
    // Returns when the first held batch is to leave.
    [[nodiscard]] Instant next_deadline() const noexcept { return held_until_; }

private:
    void take(const verbs::Completion& completion, Instant now) noexcept;
    void break_off(Session& session, Breach breach, Instant now) noexcept;
    void take_batch(Session& session, std::uint32_t immediate, Instant now) noexcept;
    void take_failures(Instant now) noexcept;
    void take_sent(Session& session, const verbs::Completion& completion, Instant now) noexcept;
    void flush(Session& session, Instant now) noexcept;
    bool send_batches(Session& session, Instant now) noexcept;
    [[nodiscard]] bool is_held(Session& session, Instant now) noexcept;
    void on_word(Session& session, Instant now) noexcept;
    void serve_words(Session& session, bool waits, bool held) noexcept;
    [[nodiscard]] bool send(Session& session, const RingWrite& write) noexcept;

    Queues& queues_;
    Sessions& sessions_;
    Peers& peers_;
    rpc::Links& links_;
    Client& client_;
    Server& server_;
    OneSided& one_sided_;
    const HoldConfig& hold_;
    Statistics& statistics_;
    Instant held_until_ = Instant::never();     // when the first held batch is to leave
    std::array<verbs::Completion, 32> done_{};  // the completions that are being handled
};

}  // namespace cairn::copyrpc
