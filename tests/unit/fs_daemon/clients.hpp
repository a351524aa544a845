// Clients of a node as its gateway sees them, and their answers.
#pragma once

#include <map>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/shard/calls.hpp"

namespace cairn::fs::test {

// The memory of calls stays in place until the end.
class Clients final : public ShardHost {
public:
    static constexpr std::size_t kRoom = 2U << 20U;  // for each call's data

    // Makes a client's call with room for this much data.
    Call call(std::uint64_t client, std::uint32_t slot, const Request& request, ShardNumber shard = 1,
              std::size_t room = kRoom) {
        std::vector<std::uint8_t> bytes(kRequestBytes);
        bytes.resize(put_request(bytes, {.shard = shard, .sequence = ++sequence_}, request));
        return call_of(client, slot, std::move(bytes), room);
    }
    Call call_of(std::uint64_t client, std::uint32_t slot, std::vector<std::uint8_t> bytes, std::size_t room = kRoom) {
        Asked& asked = asked_[++tokens_];
        asked.bytes = std::move(bytes);
        asked.data.resize(room);
        return {tokens_, client, slot, {1000, 100, groups_}, asked.bytes, asked.data};
    }
    [[nodiscard]] std::span<std::uint8_t> data(const Call& call) { return asked_.at(call.token).data; }

    void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
        EXPECT_FALSE(answers.contains(token)) << "answered twice";
        answers[token].assign(bytes.begin(), bytes.end());
    }
    void send(ShardNumber /*to*/, std::span<const std::uint8_t> /*message*/) noexcept override { ADD_FAILURE(); }
    [[nodiscard]] bool has(const Call& call) const { return answers.contains(call.token); }
    // Returns the errno of its answer, or -1 if there is none.
    [[nodiscard]] std::int32_t error_of(const Call& call) const {
        AnswerHead head{-1, 0};
        if (has(call)) {
            FieldReader in(answers.at(call.token));
            AnswerHead::fields(in, head);
        }
        return head.error;
    }

    std::map<CallToken, std::vector<std::uint8_t>> answers;

private:
    struct Asked {
        std::vector<std::uint8_t> bytes{};
        std::vector<std::uint8_t> data{};
    };

    std::map<CallToken, Asked> asked_;
    const std::vector<std::uint32_t> groups_{7, 8};
    CallToken tokens_ = 0;
    std::uint32_t sequence_ = 0;
};

}  // namespace cairn::fs::test
