// The server's work on its clients' messages and memory, turn by turn.
#include <array>
#include <atomic>

#include "apps/perf/server.hpp"

namespace cairn::perf {

bool Server::step(Instant now) {
    std::size_t done = collect(now);
    for (const std::uint32_t index : watched_) {
        done += look_at_memory(*guests_[index]) ? 1U : 0U;
    }
    return done != 0;
}

std::size_t Server::collect(Instant now) {
    // Failures, and signalled operations of tests of both directions.
    const std::size_t ended = sends_->queue().poll(done_);
    for (const verbs::Completion& one : std::span(done_).first(ended)) {
        Guest* const guest = guests_[one.wr_id].get();
        if (guest != nullptr && one.status == verbs::CompletionStatus::Success) {
            ++guest->completed;
            post_back(*guest);
        } else if (guest != nullptr && one.status != verbs::CompletionStatus::Flushed) {
            ++lost_;
            remove(static_cast<std::uint32_t>(one.wr_id), now);
        }
    }
    return ended + collect_messages();
}

std::size_t Server::collect_messages() {
    const std::size_t count = receives_->queue().poll(done_);
    for (const verbs::Completion& one : std::span(done_).first(count)) {
        if (one.status == verbs::CompletionStatus::Success) {
            on_message(*guests_[one.wr_id], one);
        }
    }
    return count;
}

void Server::on_message(Guest& guest, const verbs::Completion& completion) {
    count_as_used(guest);
    const std::uint64_t place = guest.received++;
    const std::uint64_t number = guest.unreliable() ? completion.immediate : place;
    ++received_;
    received_bytes_ += message_bytes(completion);
    const bool good = message_bytes(completion) == guest.layout.bytes &&
                      (!guest.hello.check || has_pattern(guest.message(place), number));
    guest.bad += good ? 0 : 1;
    if (guest.hello.test == Test::Latency) {
        answer(guest, guest.unreliable() ? verbs::WorkOpcode::SendWithImmediate : verbs::WorkOpcode::Send, place,
               completion.immediate);
    }
    post_receive(guest);
}

// Returns true if the next message was written. Some unreliable messages before it may be missing.
bool Server::look_at_memory(Guest& guest) {
    std::uint8_t& last = guest.message(guest.written).back();
    const std::uint8_t seen = std::atomic_ref<std::uint8_t>(last).load(std::memory_order_acquire);
    const auto ahead = static_cast<std::uint8_t>(seen - static_cast<std::uint8_t>(guest.written));
    if (ahead == 0 || (ahead != 1 && !guest.unreliable())) {
        return false;
    }
    guest.written += ahead;
    ++guest.received;
    ++received_;
    received_bytes_ += guest.layout.bytes;
    answer(guest, verbs::WorkOpcode::RdmaWrite, guest.written - 1, 0);
    return true;
}

// Begins the server's operations in a test of both directions: the client's operation on the client's memory, with as
// many outstanding.
void Server::start_back(Guest& guest, Instant now) {
    guest.up_at = now;
    for (std::uint32_t i = guest.hello.share; i > 0; --i) {
        post_back(guest);
    }
}

void Server::post_back(Guest& guest) {
    const Hello& hello = guest.hello;
    const std::array<verbs::Sge, 1> sges{guest.mr->sge(guest.layout.offset(guest.posted), guest.layout.bytes)};
    verbs::SendRequest request;
    request.wr_id = guest.index;
    request.opcode = opcode_of(hello.operation);
    request.sges = sges;
    request.remote_address =
        hello.memory.address + MessageLayout{hello.message_bytes, hello.slots}.offset(guest.posted);
    request.rkey = hello.memory.rkey;
    guest.posted += post(guest, request) ? 1U : 0U;
}

// Posts a request, unless the connection has ended: it would be flushed at once, and its completion might find no room.
bool Server::post(Guest& guest, const verbs::SendRequest& request) noexcept {
    return guest.channel->is_up() && guest.channel->post_send(request) == verbs::PostVerdict::Posted;
}

// Sends the message back as it came.
void Server::answer(Guest& guest, verbs::WorkOpcode opcode, std::uint64_t place, std::uint32_t immediate) {
    const std::array<verbs::Sge, 1> sges{guest.mr->sge(guest.layout.offset(place), guest.layout.bytes)};
    verbs::SendRequest request;
    request.wr_id = guest.index;
    request.opcode = opcode;
    request.signalled = false;
    request.sges = sges;
    request.immediate = immediate;
    request.remote_address =
        guest.hello.memory.address + MessageLayout{guest.layout.bytes, guest.hello.slots}.offset(place);
    request.rkey = guest.hello.memory.rkey;
    (void)post(guest, request);  // a client that sends more than it announced gets no answer
}

void Server::post_receive(Guest& guest) {
    const verbs::Sge header = guest.mr->sge(guest.layout.area_bytes(), verbs::kGrhBytes);
    const verbs::Sge message = guest.mr->sge(guest.layout.offset(guest.receives_posted), guest.layout.bytes);
    if (guest.channel->post_receive(guest.index, header, message) == verbs::PostVerdict::Posted) {
        ++guest.receives_posted;
    }
}

}  // namespace cairn::perf
