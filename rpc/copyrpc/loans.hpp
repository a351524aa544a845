// Memory that callers lend to their servers, for requests and answers that are too long for the rings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/verbs/device.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/message.hpp"

namespace cairn::copyrpc {

// What a call lends, until its answer comes or its session ends, also if the call ends before: a key that ends under a
// READ would end its connection. So it is memory of the pool, and the caller's own memory is never lent.
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

// Each key opens one buffer, to one session. Device and pool outlive the object.
class Lender {
public:
    Lender(verbs::Device& device, rpc::MsgPool& pool) noexcept : device_(device), pool_(pool) {}
    // Returns a loan with a copy of `request`, if it is not empty, and room for an answer of so many bytes, if these
    // are not 0. Returns nullptr if there is no memory now for a session that has lent so much.
    [[nodiscard]] std::unique_ptr<Loan> lend(verbs::Pd& pd, std::uint64_t lent_by_session,
                                             std::span<const std::uint8_t> request, std::uint32_t answer_bytes);
    // Nobody reads or writes the memory any more. Does nothing with nullptr.
    void end(std::unique_ptr<Loan> loan) noexcept;

private:
    [[nodiscard]] bool give(verbs::Pd& pd, std::uint32_t bytes, verbs::Rights rights, rpc::MsgBuffer& memory,
                            std::unique_ptr<verbs::Mr>& key);

    verbs::Device& device_;
    rpc::MsgPool& pool_;
    std::uint64_t lent_bytes_ = 0;
};

}  // namespace cairn::copyrpc
