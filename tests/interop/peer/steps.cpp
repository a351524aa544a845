// The common part of both ends of the steps, and the server's part.
#include "tests/interop/peer/steps.hpp"

#include <algorithm>

namespace cairn::interop {

namespace {

std::string text_of(const verbs::Completion& done) {
    return "status " + std::to_string(static_cast<unsigned>(done.status)) + ", opcode " +
           std::to_string(static_cast<unsigned>(done.opcode)) + ", " + std::to_string(done.bytes) + " bytes";
}

}  // namespace

void Steps::require(bool so, std::string_view what) const {
    if (!so) {
        interop::require(
            false, std::string(step_.kind.data()) + ":" + std::to_string(step_.bytes.get()) + ": " + std::string(what));
    }
}

// Returns whether `where` has the step's pattern, and nothing after it.
bool Steps::holds(std::span<const std::uint8_t> where, std::size_t bytes) const noexcept {
    for (std::size_t i = 0; i < where.size(); ++i) {
        if (where[i] != (i < bytes ? pattern(i) : kUntouched)) {
            return false;
        }
    }
    return true;
}

void Steps::fill(std::span<std::uint8_t> where, std::size_t bytes) const noexcept {
    for (std::size_t i = 0; i < bytes; ++i) {
        where[i] = pattern(i);
    }
}

verbs::ConnectionChoice Steps::choice(std::span<const std::uint8_t> private_data) const {
    verbs::ConnectionChoice made;
    made.access = kRemoteRights;
    made.private_data = private_data;
    return made;
}

// Moves the unreliable queue pair to RTS.
void Steps::bring_up(const net::IpAddress& remote, std::uint32_t qpn, std::uint32_t psn) {
    way_ = peer_.open_way(remote);
    verbs::QpAttributes values;
    values.access = kRemoteRights;
    values.path_mtu_bytes = kPathMtuBytes;
    values.dest_qpn = Qpn{qpn};
    values.receive_psn = Psn{psn};
    values.send_psn = kFirstPsn;
    using verbs::QpState;
    constexpr std::array kWay{QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts};
    for (std::size_t i = 1; i < kWay.size(); ++i) {
        const auto transition = roce::find_transition(kWay[i - 1], kWay[i], verbs::Service::Uc);
        const auto refusal = unreliable_->qp().modify(kWay[i], transition->required, values, &way_->path());
        require(refusal == std::nullopt, "an unreliable queue pair comes up");
    }
}

void Steps::post_receive(End& to, std::size_t slot) {
    const std::size_t at = (2 + slot) * kArea;
    std::fill_n(to.mr().bytes().begin() + static_cast<std::ptrdiff_t>(at), kArea, kUntouched);
    const verbs::Sge place = to.mr().sge(at, kArea);
    require(to.qp().post_receive(verbs::ReceiveRequest{slot, {&place, 1}}) == verbs::PostVerdict::Posted,
            "a receive request is taken");
}

void Steps::post(const verbs::SendRequest& request) {
    require(end().qp().post_send(request) == verbs::PostVerdict::Posted, "a work request is taken");
}

void Steps::expect_done(CompletionOpcode opcode) {
    const verbs::Completion done = peer_.await_completion(end().sends(), "a work request completes");
    require(done.status == CompletionStatus::Success, "it succeeds, not " + text_of(done));
    require(done.opcode == opcode, "the completion is of its kind");
}

void Steps::tell(End& to, const RawMessage& message) {
    std::memcpy(to.mr().bytes().data() + kOutbox, &message, sizeof(message));
    const verbs::Sge place = to.mr().sge(kOutbox, sizeof(message));
    verbs::SendRequest request;
    request.sges = {&place, 1};
    require(to.qp().post_send(request) == verbs::PostVerdict::Posted, "a message is taken");
    const verbs::Completion done = peer_.await_completion(to.sends(), "a message is sent");
    require(done.status == CompletionStatus::Success, "a message arrives");
}

// Takes a message and posts its slot again.
RawMessage Steps::take_message(End& from, const verbs::Completion& done) {
    require(done.status == CompletionStatus::Success && done.opcode == CompletionOpcode::Receive &&
                done.bytes == sizeof(RawMessage) && !done.has_immediate && !done.has_invalidate && !done.solicited,
            "a message is a plain SEND, not " + text_of(done));
    const auto message = read_raw<RawMessage>(from.mr().bytes().data() + (2 + done.wr_id) * kArea);
    post_receive(end(), done.wr_id);
    return message;
}

// --- The server ---

void Steps::serve(const cm::Requested& requested) {
    const auto hello = read_raw<RawHello>(requested.private_data.octets.data());
    const RawOffer offer{Be32{kMagic}, Be32{end().mr().rkey().value}, Be32{end().qp().qpn().value},
                         Be32{kFirstPsn.value()}, Be64{end().mr().address()}};
    (void)take(peer_.connector().accept(requested.id, end_.qp(), choice(bytes_of(offer)), peer_.now()));
    (void)peer_.await_event<cm::Established>("the connection is established");
    if (unreliable_ != nullptr) {
        bring_up(requested.route.remote, hello.qpn.get(), hello.psn.get());
    }
    for (std::size_t i = 0; i < kSlots; ++i) {
        post_receive(end(), i);
    }
    tell(end_, step_);
    verbs::Completion done;
    while (await_received(done)) {
        step_ = take_message(end(), done);
        serve_step();
    }
    check_memory();
}

void Steps::serve_step() {
    prepare_step();
    step_.key.set(window_ == nullptr ? 0 : window_->rkey().value);
    tell(end(), step_);
    if (is("dead_write")) {
        return;
    }
    verbs::Completion done;
    if (is("send") || is("send_imm") || is("send_inv") || is("write_imm")) {
        require(await_received(done), "the asker stays");
        check_received(done);
    }
    require(await_received(done), "the asker stays");
    (void)take_message(end(), done);
    check_memory();
    tell(end(), step_);
}

void Steps::prepare_step() {
    std::fill_n(area(0).begin(), kArea, kUntouched);
    if (is_atomic()) {
        std::memcpy(area(0).data(), &kBefore, sizeof(kBefore));
    } else if (is("read")) {
        fill(area(0), step_.bytes.get());
    } else if (is("bind")) {
        bind_window();
    } else if (is("local_inv")) {
        require(window_->invalidate(end().qp(), 0) == verbs::PostVerdict::Posted, "the invalidation is posted");
        expect_done(CompletionOpcode::LocalInvalidate);
    }
}

void Steps::bind_window() {
    if (window_ == nullptr) {
        window_ = take(peer_.device().create_window(peer_.pd(), verbs::WindowType::Type2B));
    }
    const verbs::WindowBind area{.bytes = kArea, .rights = verbs::Right::RemoteWrite};
    require(window_->bind(end().qp(), end().mr(), area) == verbs::PostVerdict::Posted, "the binding is posted");
    expect_done(CompletionOpcode::BindWindow);
}

// Waits for a received message. Returns false if the asker has left.
bool Steps::await_received(verbs::Completion& done) {
    std::array<verbs::Completion, 1> polled{};
    std::optional<cm::Event> event;
    peer_.await("the asker goes on", [&] {
        event = peer_.connector().poll_event();
        const bool came = !event && end().receives().poll(polled) == 1;
        return event || (came && !(is("dead_write") && polled[0].status == CompletionStatus::Flushed));
    });
    done = polled[0];
    if (event) {
        const auto* const leaving = std::get_if<cm::DisconnectRequested>(&*event);
        require(leaving != nullptr, "the asker disconnects");
        (void)take(peer_.connector().disconnect(leaving->id, {}, peer_.now()));
        (void)peer_.await_event<cm::Released>("the connection is released");
    }
    return !event;
}

// Checks the completion that the step's own work request caused in the receive queue.
void Steps::check_received(const verbs::Completion& done) {
    const bool immediate = is("send_imm") || is("write_imm");
    require(done.status == CompletionStatus::Success, "it is received");
    require(done.bytes == step_.bytes.get(), "it has its length, not " + std::to_string(done.bytes));
    require(done.opcode == (is("write_imm") ? CompletionOpcode::ReceiveRdmaWithImmediate : CompletionOpcode::Receive),
            "the completion is of its kind");
    require(done.has_immediate == immediate && (!immediate || done.immediate == kImmediate + step_.number.get()),
            "it has its immediate value");
    require(done.has_invalidate == is("send_inv") && (!is("send_inv") || done.invalidated == window_->rkey()),
            "it invalidates the window");
    require(done.solicited == (step_.solicited.get() != 0), "its event is solicited, or not");
    require(holds(area(2 + done.wr_id), is("write_imm") ? 0 : done.bytes), "the message is what was sent");
    post_receive(end(), done.wr_id);
}

void Steps::check_memory() {
    if (is_atomic()) {
        const std::uint64_t added = is("fadd") ? kBefore + kAdd : kBefore;
        std::uint64_t word = 0;
        std::memcpy(&word, area(0).data(), sizeof(word));
        require(word == (is("cas") ? kAfter : added), "memory holds the atomic's result");
        return;
    }
    const bool written = is("write") || is("write_imm") || is("window_write") || is("read");
    require(holds(area(0), written ? step_.bytes.get() : 0), "memory is as it should be");
}

void run_steps(Peer& peer, const Options& options) {
    if (!options.ask.empty()) {
        const net::IpAddress remote = take(net::IpAddress::parse(options.ask));
        const auto way = peer.open_way(remote);
        Steps(peer, options.unreliable).ask(options, remote);
        return;
    }
    peer.listen(options.service_port, 4);
    const auto requested = peer.await_event<cm::Requested>("somebody connects");
    const auto hello = read_raw<RawHello>(requested.private_data.octets.data());
    require(hello.magic.get() == kMagic, "an asker of steps connects");
    Steps(peer, hello.unreliable.get() != 0).serve(requested);
}

}  // namespace cairn::interop
