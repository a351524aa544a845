// The asker of the steps.
#include <algorithm>
#include <charconv>

#include "tests/interop/peer/steps.hpp"

namespace cairn::interop {

struct StepKind {
    std::string_view name;
    WorkOpcode opcode;
    CompletionOpcode done;
};

namespace {

constexpr std::array kKinds{StepKind{"send", WorkOpcode::Send, CompletionOpcode::Send},
                            StepKind{"send_imm", WorkOpcode::SendWithImmediate, CompletionOpcode::Send},
                            StepKind{"send_inv", WorkOpcode::SendWithInvalidate, CompletionOpcode::Send},
                            StepKind{"write", WorkOpcode::RdmaWrite, CompletionOpcode::RdmaWrite},
                            StepKind{"write_imm", WorkOpcode::RdmaWriteWithImmediate, CompletionOpcode::RdmaWrite},
                            StepKind{"read", WorkOpcode::RdmaRead, CompletionOpcode::RdmaRead},
                            StepKind{"cas", WorkOpcode::CompareSwap, CompletionOpcode::CompareSwap},
                            StepKind{"cas_miss", WorkOpcode::CompareSwap, CompletionOpcode::CompareSwap},
                            StepKind{"fadd", WorkOpcode::FetchAdd, CompletionOpcode::FetchAdd},
                            StepKind{"window_write", WorkOpcode::RdmaWrite, CompletionOpcode::RdmaWrite},
                            StepKind{"dead_write", WorkOpcode::RdmaWrite, CompletionOpcode::RdmaWrite}};

}  // namespace

void Steps::ask(const Options& options, const net::IpAddress& remote) {
    const RawHello hello{Be32{kMagic}, Be32{options.unreliable ? 1U : 0U}, Be32{end().qp().qpn().value},
                         Be32{kFirstPsn.value()}};
    verbs::ConnectTo to;
    to.remote = remote;
    to.port = options.service_port;
    to.path_mtu_bytes = kPathMtuBytes;
    to.choice = choice(bytes_of(hello));
    const verbs::ConnectionId id = take(peer_.connector().connect(end_.qp(), to, peer_.now()));
    const auto established = peer_.await_event<cm::Established>("the connection is established");
    post_receive(end_, 0);
    const auto offer = read_raw<RawOffer>(established.private_data.octets.data());
    require(offer.magic.get() == kMagic, "a server of steps answers");
    if (unreliable_ != nullptr) {
        bring_up(remote, offer.qpn.get(), offer.psn.get());
    }
    for (std::size_t i = 1; i < kSlots; ++i) {
        post_receive(end(), i);
    }
    (void)take_message(end_, peer_.await_completion(end_.receives(), "the server is ready"));
    for (std::size_t i = 0; i < options.steps.size(); ++i) {
        ask_step(options.steps[i], static_cast<std::uint32_t>(i), offer);
    }
    (void)take(peer_.connector().disconnect(id, {}, peer_.now()));
    (void)peer_.await_event<cm::Disconnected>("the server disconnects");
    (void)peer_.await_event<cm::Released>("the connection is released");
}

void Steps::ask_step(const std::string& text, std::uint32_t number, const RawOffer& offer) {
    const std::size_t name_end = std::min(text.find(':'), text.size());
    RawMessage wanted;
    require(name_end < wanted.kind.size(), "the step is KIND[:BYTES[:s]]");
    std::copy_n(text.begin(), name_end, wanted.kind.begin());
    std::uint32_t bytes = 0;
    (void)std::from_chars(text.data() + std::min(name_end + 1, text.size()), text.data() + text.size(), bytes);
    require(bytes < kArea, "the step is KIND[:BYTES[:s]]");
    wanted.bytes.set(bytes);
    wanted.solicited.set(text.ends_with(":s") ? 1 : 0);
    wanted.number.set(number);
    tell(end(), wanted);
    step_ = take_message(end(), peer_.await_completion(end().receives(), "the server is ready for " + text));
    const auto* const kind =
        std::find_if(kKinds.begin(), kKinds.end(), [this](const StepKind& one) { return is(one.name); });
    if (kind != kKinds.end()) {
        carry_out(*kind, offer);
    }
    if (!is("dead_write")) {
        tell(end(), step_);
        (void)take_message(end(), peer_.await_completion(end().receives(), "the server has found right " + text));
    }
}

void Steps::carry_out(const StepKind& kind, const RawOffer& offer) {
    const bool brings = is_atomic() || is("read");
    std::fill_n(end().mr().bytes().begin(), 2 * kArea, kUntouched);
    fill(area(0), brings ? 0 : step_.bytes.get());
    const verbs::Sge place = end().mr().sge(brings ? kArea : 0, is_atomic() ? roce::kAtomicBytes : step_.bytes.get());
    verbs::SendRequest request;
    request.opcode = kind.opcode;
    request.solicited = step_.solicited.get() != 0;
    request.sges = {&place, place.bytes == 0 ? 0U : 1U};
    request.immediate = kImmediate + step_.number.get();
    request.invalidate = Rkey{step_.key.get()};
    request.remote_address = offer.address.get();
    request.rkey = Rkey{is("window_write") || is("dead_write") ? step_.key.get() : offer.rkey.get()};
    request.compare = is("cas") ? kBefore : ~kBefore;
    request.swap_or_add = is("fadd") ? kAdd : kAfter;
    post(request);
    if (is("dead_write")) {
        const verbs::Completion done = peer_.await_completion(end().sends(), "the refusal comes");
        require(done.status == CompletionStatus::RemoteAccess, "access is refused");
        return;
    }
    expect_done(kind.done);
    require(!is("read") || holds(area(1), step_.bytes.get()), "what is read is what is there");
    require(!is_atomic() || std::memcmp(area(1).data(), &kBefore, sizeof(kBefore)) == 0, "the old value comes back");
}

}  // namespace cairn::interop
