// The output of a turn: answers to clients and messages to other shards. It leaves after the commit of what it says.
#pragma once

#include "fs/message/census.hpp"
#include "fs/shard/peers.hpp"
#include "fs/shard/turn_answers.hpp"
#include "fs/store/store.hpp"

namespace cairn::fs {

// The room for an answer.
class AnswerRoom {
public:
    AnswerRoom(std::span<std::uint8_t> room, std::uint32_t table) noexcept : room_(room), table_(table) {}

    // Write an answer. Each returns the answer's length.
    template <class Answer>
    [[nodiscard]] std::uint32_t ok(const Answer& answer) const {
        return put_answer(room_, {0, table_}, answer);
    }
    [[nodiscard]] std::uint32_t error(std::int32_t error) const {
        return put_error(room_, {error == kErrorUnreachable ? EIO : error, table_});
    }
    [[nodiscard]] ListWriter list() const { return {room_, {0, table_}}; }
    [[nodiscard]] CensusWriter census() const { return {room_, {0, table_}}; }

private:
    std::span<std::uint8_t> room_;
    std::uint32_t table_;
};

class Replies {
public:
    Replies(Store& store, ShardHost& host, Peers& peers, std::uint64_t table_epoch) noexcept
        : store_(store), host_(host), peers_(peers), table_(static_cast<std::uint32_t>(table_epoch)) {}

    [[nodiscard]] AnswerRoom room() noexcept { return {answers_.room(), table_}; }
    // Stages the answer in room(), `bytes` long, for a call.
    void stage(CallToken token, std::uint32_t bytes) {
        if (token == kNobody) {
            return;
        }
        answers_.stage(token, bytes);
        if (!answers_.has_room()) {
            commit();
        }
    }
    template <class Answer>
    void ok(CallToken token, const Answer& answer) {
        stage(token, room().ok(answer));
    }
    void error(CallToken token, std::int32_t error) { stage(token, room().error(error)); }
    void commit() {
        store_.commit();
        answers_.leave(host_);
        (void)peers_.leave();
    }

private:
    Store& store_;
    ShardHost& host_;
    Peers& peers_;
    std::uint32_t table_;
    TurnAnswers answers_;
};

}  // namespace cairn::fs
