// Two ends of a connection with the ledgers of both rings, without memory, engine or clock, for tests of the rules of
// space and credits. A batch arrives in order and complete.
#pragma once

#include <deque>
#include <random>
#include <set>
#include <vector>

#include "rpc/copyrpc/receive_ledger.hpp"
#include "rpc/copyrpc/send_ledger.hpp"

namespace cairn::copyrpc::test {

struct Message {
    bool answer = false;
    std::uint32_t call = 0;
    std::uint32_t blocks = 0;
    std::uint32_t charge = 0;
    RingPosition at{};

    auto operator<=>(const Message&) const = default;
};

struct Flight {
    Batch batch{};
    std::uint32_t returned = 0;
    std::uint32_t granted = 0;
    std::uint32_t receives = 0;
    std::vector<Message> messages{};
};

class End {
public:
    End(RingShape peers, RingShape own, std::uint32_t receives, Flow flow)
        : send(peers, own, receives, flow), receive(own, receives, flow), used_(own.blocks()) {}

    bool call(std::uint32_t blocks, std::uint32_t charge) {
        if (send.judge_request(blocks, charge) != Room::Fits) {
            return false;
        }
        ++calls;
        placed_.push_back({false, calls, blocks, charge, send.take_request(blocks, charge)});
        return true;
    }
    // Answers the request that was kept as number `which`. An answer without room waits, in order, outside of the ring.
    void answer(std::size_t which, std::uint32_t blocks) {
        const Message request = kept[which];
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
        free(request);
        late.push_back({true, request.call, blocks, request.charge, {}});
        serve_late();
    }
    // Takes the other end's word, as it was when the READ arrived there.
    bool look(const ConsumerWord& word) { return send.on_word(word); }
    // Puts the messages that leave at the end of a turn onto the wire.
    void turn(std::deque<Flight>& wire) {
        serve_late();
        while (send.has_batch(has_news())) {
            leave(send.take_batch(), wire);
        }
        if (has_news() && send.has_room_for_empty()) {
            leave(send.take_empty(), wire);
            ++empties;
        }
        send.check();
    }
    // Takes a batch. Returns false if it broke a rule. Requests are kept; if `at_once` returns true for one, it is
    // answered while the batch is read.
    template <class AtOnce>
    bool take(const Flight& flight, AtOnce&& at_once) {
        const Batch& batch = flight.batch;
        if (!receive.on_batch(BatchImmediate::parse(BatchImmediate{batch.blocks, batch.wraps}.raw())) ||
            !learn(flight)) {
            return false;
        }
        for (std::uint32_t i = 0; i < batch.blocks; ++i) {
            if (used_[receive.ring().index_of(batch.begin + i)]) {
                return false;  // the blocks that were written to are in use
            }
        }
        if (receive.next() != batch.begin || receive.read(1, false) != batch.begin) {
            return false;
        }
        for (const Message& message : flight.messages) {
            if (!take(message)) {
                return false;
            }
            if (!message.answer && at_once()) {
                answer(kept.size() - 1, 1);
            }
        }
        return receive.unread() == 0;
    }

    // Returns the messages that have not left.
    [[nodiscard]] const std::deque<Message>& placed() const { return placed_; }

    SendLedger send;
    ReceiveLedger receive;
    std::vector<Message> kept;
    std::deque<Message> late;  // answers without room
    std::uint32_t calls = 0;
    std::uint32_t answered = 0;
    std::uint32_t empties = 0;
    std::uint32_t batches = 0;

private:
    [[nodiscard]] bool has_news() const { return receive.has_news() || send.grantable() >= send.ring().grant_step(); }
    void leave(const Batch& batch, std::deque<Flight>& wire) {
        Flight flight{batch, 0, 0, 0, {}};
        if (send.flow() == Flow::Read) {
            flight.returned = receive.word().blocks;
            flight.receives = receive.word().batches & 0xffffU;
        } else {
            flight.returned = receive.take_returned();
            flight.granted = send.grant();
            flight.receives = receive.take_receives();
        }
        for (std::uint32_t i = 0; i < batch.messages; ++i) {
            flight.messages.push_back(placed_.front());
            placed_.pop_front();
        }
        ++batches;
        wire.push_back(flight);
    }
    void serve_late() {
        while (!late.empty() && send.fits_answer(late.front().blocks)) {
            Message answer = late.front();
            late.pop_front();
            answer.at = send.take_answer(answer.blocks, answer.charge);
            placed_.push_back(answer);
        }
    }
    bool learn(const Flight& flight) {
        return send.flow() == Flow::Read
                   ? send.on_word({flight.returned, send.batches_of(static_cast<std::uint16_t>(flight.receives))})
                   : send.on_header(flight.returned, flight.granted, flight.receives);
    }
    bool take(const Message& message) {
        if (receive.read(message.blocks, !message.answer) != message.at) {
            return false;
        }
        if (message.answer) {
            send.on_answer(message.charge);
            ++answered;
            return true;
        }
        kept.push_back(message);
        for (std::uint32_t i = 0; i < message.blocks; ++i) {
            used_[receive.ring().index_of(message.at + i)] = true;
        }
        return send.on_request(message.charge);
    }
    void free(const Message& request) {
        receive.release(request.at, request.blocks);
        for (std::uint32_t i = 0; i < request.blocks; ++i) {
            used_[receive.ring().index_of(request.at + i)] = false;
        }
    }

    std::deque<Message> placed_;  // not left yet, in order
    std::vector<bool> used_;      // the blocks of kept requests
};

}  // namespace cairn::copyrpc::test
