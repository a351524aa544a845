// Memory of answers without a room of their own, until their WRITEs are complete.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/verbs/device.hpp"
#include "rpc/common/index_list.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/scalerpc/block.hpp"

namespace cairn::scalerpc {

// Lends the memory. The pool and the protection domain outlive the object.
class LongAnswers {
public:
    LongAnswers(const BlockShape& shape, rpc::MsgPool& pool) : block_bytes_(shape.bytes), pool_(pool) {}
    ~LongAnswers() { close(); }
    LongAnswers(const LongAnswers&) = delete;
    LongAnswers& operator=(const LongAnswers&) = delete;
    // Takes memory for `answers` of `sessions`, at most `answers_each` for each session. Errors: no memory; the device
    // has no room.
    Status open(verbs::Device& device, verbs::Pd& pd, std::uint32_t answers, std::uint32_t sessions,
                std::uint32_t answers_each) {
        const std::uint64_t bytes = std::max<std::uint64_t>(std::uint64_t{block_bytes_} * answers, 1);
        memory_ =
            bytes <= pool_.longest_message() ? pool_.allocate(static_cast<std::uint32_t>(bytes)) : rpc::MsgBuffer{};
        if (!memory_.valid()) {
            return Error{fmt::format("there is no memory for {} bytes of long answers", bytes),
                         fmt::format("choose fewer long_answers: the pool has room for {} bytes at a time",
                                     pool_.longest_message())};
        }
        auto region = device.register_memory(pd, memory_.span(), {});
        if (!region.ok()) {
            return region.error();
        }
        region_ = std::move(region).value();
        loans_.resize(answers);
        shares_.resize(sessions);
        answers_each_ = answers_each;
        for (std::uint32_t i = answers; i > 0; --i) {
            free_.push_back(i - 1);
        }
        return Nothing{};
    }

    // Gives the memory back. No block is lent, or the queue pairs have ended.
    void close() noexcept {
        region_.reset();
        pool_.release(memory_);
    }

    // Lends a block. Returns kNone if all are lent, or the session has its share. So a client that acknowledges nothing
    // keeps no more than that.
    [[nodiscard]] std::uint32_t take(SessionId session) noexcept {
        Share& share = shares_[session.number()];
        if (free_.empty() || share.count == answers_each_) {
            return rpc::kNone;
        }
        const std::uint32_t block = free_.back();
        free_.pop_back();
        loans_[block].session = session;
        loans_[block].lent = true;
        share.lent.add(loans_, block);
        ++share.count;
        return block;
    }
    [[nodiscard]] std::span<std::uint8_t> block(std::uint32_t number) const noexcept {
        return memory_.span().subspan(std::size_t{number} * block_bytes_, block_bytes_);
    }
    [[nodiscard]] verbs::Sge sge(std::uint32_t number, std::uint32_t tail) const noexcept {
        return region_->sge((std::uint64_t{number} + 1) * block_bytes_ - tail, tail);
    }
    // Returns the name of a loan, for the completion of its WRITE.
    [[nodiscard]] std::uint64_t loan_of(std::uint32_t number) const noexcept {
        return std::uint64_t{loans_[number].generation} << 32U | number;
    }
    // Ends a loan whose WRITE is complete. Does nothing if the loan has ended with its session.
    void on_written(std::uint64_t loan) noexcept {
        const auto number = static_cast<std::uint32_t>(loan);
        if (number < loans_.size() && loans_[number].lent && loan == loan_of(number)) {
            give_back(number);
        }
    }
    [[nodiscard]] bool lends(SessionId session) const noexcept { return !shares_[session.number()].lent.empty(); }
    // Ends the loans of a session whose queue pair has stopped. Before, it may send the answers again.
    void end(SessionId session) noexcept {
        const Share& share = shares_[session.number()];
        while (!share.lent.empty()) {
            give_back(share.lent.first);
        }
    }

private:
    static constexpr std::uint32_t kGenerations =
        0x00ffffff;  // the highest byte of a work request's number is its kind
    struct Loan {
        SessionId session{};
        bool lent = false;
        std::uint32_t generation = 0;
        std::uint32_t next = rpc::kNone;  // in the session's list, as previous
        std::uint32_t previous = rpc::kNone;
    };
    // The loans of one session.
    struct Share {
        rpc::IndexList lent{};
        std::uint32_t count = 0;
    };

    void give_back(std::uint32_t number) noexcept {
        Loan& loan = loans_[number];
        Share& share = shares_[loan.session.number()];
        share.lent.remove(loans_, number);
        --share.count;
        loan.lent = false;
        loan.generation = (loan.generation + 1) & kGenerations;
        free_.push_back(number);
    }

    std::uint32_t block_bytes_;
    rpc::MsgPool& pool_;
    rpc::MsgBuffer memory_{};
    std::unique_ptr<verbs::Mr> region_;
    std::vector<Loan> loans_;
    std::vector<std::uint32_t> free_;
    std::vector<Share> shares_;  // by session
    std::uint32_t answers_each_ = 0;
};

}  // namespace cairn::scalerpc
