// Memory that callers lend to their servers, for requests and answers that are too long for the rings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/verbs/device.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/message.hpp"

namespace cairn::copyrpc {

// Memory that a call lends, until its answer comes or its session ends. It stays lent even if the call ends before: if
// a key ended under a READ, the connection would end. So it is memory of the pool; the caller's own memory is never
// lent.
struct Loan {
    rpc::MsgBuffer request{};
    std::unique_ptr<verbs::Mr> request_key;
    rpc::MsgBuffer answer{};
    std::unique_ptr<verbs::Mr> answer_key;

    [[nodiscard]] std::uint64_t bytes() const noexcept { return std::uint64_t{request.bytes} + answer.bytes; }
    [[nodiscard]] static Place place_of(const verbs::Mr& key) noexcept {
        return {key.address(), key.rkey(), static_cast<std::uint32_t>(key.bytes().size())};
    }
};

// Lends memory. Each key opens one buffer, to one session. Device and pool outlive the object.
class Lender {
public:
    Lender(verbs::Device& device, rpc::MsgPool& pool) noexcept : device_(device), pool_(pool) {}
    // Returns a loan: a copy of `request` unless that is empty, and room for an answer unless its size is 0. Returns
    // nullptr if there is no memory now for a session that has lent this much.
    [[nodiscard]] std::unique_ptr<Loan> lend(verbs::Pd& pd, std::uint64_t lent_by_session,
                                             std::span<const std::uint8_t> request, std::uint32_t answer_bytes);
    // Takes the memory back: the peer does not use it any more. Does nothing with nullptr.
    void end(std::unique_ptr<Loan> loan) noexcept;

private:
    [[nodiscard]] bool give(verbs::Pd& pd, std::uint32_t bytes, verbs::Rights rights, rpc::MsgBuffer& memory,
                            std::unique_ptr<verbs::Mr>& key);

    verbs::Device& device_;
    rpc::MsgPool& pool_;
    std::uint64_t lent_bytes_ = 0;
};

}  // namespace cairn::copyrpc
