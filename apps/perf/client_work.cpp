// The client's operations: it posts, completes and verifies them.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>

#include "apps/perf/client.hpp"

namespace cairn::perf {

namespace {

// The time after which an unreliable service's answer is lost.
constexpr Duration kLost = milliseconds(100);

// Returns the last byte of a message in a WRITE latency test. It differs from that of the message before.
std::uint8_t last_byte_of(std::uint64_t number) noexcept {
    return static_cast<std::uint8_t>(number + 1);
}

std::uint8_t watched(std::uint8_t& byte) noexcept {
    return std::atomic_ref<std::uint8_t>(byte).load(std::memory_order_acquire);
}

}  // namespace

std::size_t Client::collect(Instant now) {
    const std::size_t count = sends_->poll(done_);
    for (const verbs::Completion& one : std::span(done_).first(count)) {
        if (one.status != verbs::CompletionStatus::Success) [[unlikely]] {
            fail(text_of(one.status));
            return count;
        }
        complete(lanes_[one.wr_id], now);
    }
    if (receives_back()) {
        collect_back();
    }
    const std::uint64_t before = completed_;
    if (answers_by_message()) {
        collect_replies(now);
    } else if (answers_in_memory()) {
        collect_written(now);
    }
    return count + completed_ - before;
}

void Client::collect_replies(Instant now) {
    verbs::Completion reply;
    while (!failed() && receives_->poll({&reply, 1}) != 0) {
        if (reply.status != verbs::CompletionStatus::Success) {
            fail(text_of(reply.status));
            return;
        }
        Lane& lane = lanes_.front();
        if (unreliable() && reply.immediate != static_cast<std::uint32_t>(lane.completed)) {
            post_receive(lane, lane.completed + 1);  // too late
            continue;
        }
        if (lane.completed == lane.posted || message_bytes(reply) != layout_.bytes) {
            fail("the server sent what was not asked for");
            return;
        }
        complete(lane, now);
        post_receive(lane, lane.completed + 1);
    }
}

// Takes messages that the server sends by itself. When the client leaves, it learns of the end from the completions of
// all requests under way.
void Client::collect_back() {
    std::array<verbs::Completion, 64> came;
    const std::size_t count = receives_->poll(came);
    for (const verbs::Completion& one : std::span(came).first(count)) {
        if (one.status == verbs::CompletionStatus::Success) {
            post_back_receive(static_cast<std::uint32_t>(one.wr_id));
        } else if (phase_ != Phase::Leaving) {
            fail(text_of(one.status));
        }
    }
}

void Client::post_back_receive(std::uint32_t index) {
    Lane& lane = lanes_[index];
    const verbs::Sge message = mr_->sge(answer_offset(lane, 0), layout_.bytes);
    if (lane.channel->post_receive(index, message, message) != verbs::PostVerdict::Posted) {
        fail("a receive request could not be posted: the connection ended");
    }
}

void Client::collect_written(Instant now) {
    Lane& lane = lanes_.front();
    if (outstanding_ == 0) {
        return;
    }
    std::uint8_t& last = memory_at(answer_offset(lane, lane.completed)).back();
    if (watched(last) == last_byte_of(lane.completed)) {
        complete(lane, now);
    }
}

// Gives up a message, or its answer, that does not come. Called after the answers of this turn were taken.
void Client::give_up_lost(Instant now) {
    if ((!answers_by_message() && !answers_in_memory()) || outstanding_ == 0) {
        return;
    }
    Lane& lane = lanes_.front();
    if (now - lane.posted_at[lane.completed & (lane.posted_at.size() - 1)] > kLost) {
        ++lane.completed;
        --outstanding_;
    }
}

void Client::complete(Lane& lane, Instant now) {
    const std::uint64_t number = lane.completed++;
    --outstanding_;
    ++completed_;
    if (options().check) {
        verify(lane, number);
    }
    if (now >= measure_from_) {
        SizeResult& result = results_[size_at_];
        ++result.operations;
        const Duration took = now - lane.posted_at[number & (lane.posted_at.size() - 1)];
        const bool there_and_back = answers_by_message() || answers_in_memory();
        result.latency_ns.record(static_cast<std::uint64_t>(there_and_back ? took.ns / 2 : took.ns));
    }
}

void Client::verify(const Lane& lane, std::uint64_t number) {
    const std::span<std::uint8_t> answer = memory_at(answer_offset(lane, number));
    bool good = true;
    switch (options().operation) {
        case Operation::Send:
            good = options().test == Test::Bandwidth || has_pattern(answer, number);
            break;
        case Operation::Write:
            good = has_pattern(answer.first(answers_in_memory() ? answer.size() - 1 : answer.size()), number);
            break;
        case Operation::Read:
            good = has_pattern(answer, number & (layout_.slots - 1));
            break;
        case Operation::CompareSwap:
        case Operation::FetchAdd:
            good = std::memcmp(answer.data(), &number, sizeof(number)) == 0;
            break;
        case Operation::Count:
            break;
    }
    ++results_[size_at_].checked;
    if (!good) {
        fail(fmt::format("message {} came back with other data than was sent", number));
    }
}

void Client::post_more(Instant now) {
    const std::uint64_t most = options().iterations != 0 ? options().iterations : ~std::uint64_t{0};
    while (outstanding_ < options().depth && posted_ < most && !failed()) {
        Lane& lane = lanes_[turn_];
        if (lane.posted - lane.completed < share_) {
            post(lane, turn_, now);
        }
        turn_ = turn_ + 1 == lanes_.size() ? 0 : turn_ + 1;
    }
}

// Returns the opcode. The immediate data of an unreliable message are its number, by which the receiver knows the
// contents to expect.
verbs::WorkOpcode Client::opcode() const noexcept {
    if (!unreliable() || answers_in_memory()) {
        return opcode_of(options().operation);
    }
    return options().operation == Operation::Send ? verbs::WorkOpcode::SendWithImmediate
                                                  : verbs::WorkOpcode::RdmaWriteWithImmediate;
}

void Client::post(Lane& lane, std::uint32_t index, Instant now) {
    const std::uint64_t number = lane.posted;
    const Operation operation = options().operation;
    const bool brings_data = operation == Operation::Read || is_atomic(operation);
    const std::uint64_t slot = is_atomic(operation) ? 0 : layout_.offset(number);
    if (options().check && !brings_data) {
        fill_pattern(message(lane, number), number);
    }
    if (answers_in_memory()) {
        message(lane, number).back() = last_byte_of(number);
    }
    verbs::SendRequest& request = request_;  // its other members keep their initial values
    sges_[0] = mr_->sge(brings_data ? answer_offset(lane, number) : lane.area + layout_.offset(number), layout_.bytes);
    request.wr_id = index;
    request.opcode = opcode();
    request.immediate = static_cast<std::uint32_t>(number);
    request.sges = sges_;
    request.remote_address = lane.remote.address + slot;
    request.rkey = lane.remote.rkey;
    request.compare = number;
    request.swap_or_add = operation == Operation::FetchAdd ? 1 : number + 1;
    const bool reads_back = options().check && operation == Operation::Write && !answers_in_memory();
    request.signalled = !reads_back && !answers_in_memory() && !answers_by_message();
    verbs::PostVerdict verdict = lane.channel->post_send(request);
    if (reads_back && verdict == verbs::PostVerdict::Posted) {
        sges_[0] = mr_->sge(answer_offset(lane, number), layout_.bytes);
        request.opcode = verbs::WorkOpcode::RdmaRead;
        request.signalled = true;
        verdict = lane.channel->post_send(request);
    }
    if (verdict != verbs::PostVerdict::Posted) [[unlikely]] {
        fail("an operation could not be posted: the connection ended");
        return;
    }
    lane.posted_at[number & (lane.posted_at.size() - 1)] = now;
    ++lane.posted;
    ++posted_;
    ++outstanding_;
}

void Client::post_receive(Lane& lane, std::uint64_t number) {
    const verbs::Sge header = mr_->sge(mr_->bytes().size() - kHeaderArea, verbs::kGrhBytes);
    const verbs::Sge message = mr_->sge(answer_offset(lane, number), layout_.bytes);
    if (lane.channel->post_receive(number, header, message) != verbs::PostVerdict::Posted) {
        fail("a receive request could not be posted: the connection ended");
    }
}

}  // namespace cairn::perf
