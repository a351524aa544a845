// Bytes as events of a queue pair: packets of its peer, work requests, time, changes of state. In all cases nothing
// breaks, invariants hold, no byte outside of its regions is touched, and every kept buffer comes back.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "lib/roce/rc/queue_pair.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/guarded_pages.hpp"

namespace {

using namespace cairn;
using namespace cairn::roce;
using namespace cairn::roce::rc;
using cairn::test::Input;

using Datagram = std::vector<std::uint8_t>;

constexpr std::uint64_t kBase = 0x10000;
constexpr Rights kAll = Rights{Right::LocalWrite} | Right::RemoteWrite | Right::RemoteRead | Right::RemoteAtomic |
                        Right::RemoteInvalidate | Right::BindWindow | Right::FlushGlobal | Right::FlushPersistent;
constexpr std::uint8_t kCnp = 0xf8;  // bits of an opcode; no service has all of them
constexpr Rights kRemote =
    Rights{Right::RemoteWrite} | Right::RemoteRead | Right::RemoteAtomic | Right::FlushGlobal | Right::FlushPersistent;

bool touch(void*, std::span<std::uint8_t> memory, bool) noexcept {
    return memory.front() + memory.back() != 511;
}

QpCapacity capacity_of(std::uint8_t bits) {
    QpCapacity capacity;
    capacity.service = (bits & 1U) != 0 ? wire::Service::Uc : (bits & 4U) != 0 ? wire::Service::Xrc : wire::Service::Rc;
    capacity.window_packets = 8;
    capacity.send_slots = 8;
    return capacity;
}

struct World {
    explicit World(Input& all)
        : input(all),
          config(all.byte()),
          qp(Qpn{1}, is_target() ? Pd{} : pd, capacity_of(config), context(),
             is_target() ? XrcTarget{&xrc, domain} : XrcTarget{}) {
        region = memory.register_region({pd, pages.span(), kBase, kAll}).value();
        window = memory.create_window(pd, WindowType::Type2B).value();
        bring_to_rts();
    }
    [[nodiscard]] bool is_target() const {
        return capacity_of(config).service == wire::Service::Xrc && (config & 8U) != 0;
    }
    QpContext context() {
        QpContext all{memory, completions, completions, counters};
        all.flush = {&touch, nullptr};
        all.held = &held;
        all.link_bytes_per_s = 1e9;
        return all;
    }
    void bring_to_rts() {
        QpAttributes values;
        values.access = kRemote;
        values.path_mtu_bytes = 256;
        values.receive_psn = Psn{0xfffffc};
        values.send_psn = Psn{0xfffffe};
        values.max_rd_atomic = 3;
        values.max_dest_rd_atomic = 3;
        values.ack_timeout = 6;
        values.selective = (config & 2U) != 0;
        values.delayed_acks = (config & 0x20U) != 0;
        for (const QpState to : {QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts}) {
            const Transition step = find_transition(qp.state(), to, qp.kind()).value();
            const AttributeSet which = step.required.with(step.optional);
            if (qp.modify(to, which, values) != std::nullopt) {
                std::abort();
            }
        }
        oldest = values.send_psn;
    }

    // Returns a known key, or one near it, chosen by the low bits.
    Rkey key(std::uint8_t bits) const {
        const Rkey known = (bits & 1U) != 0 ? region : window;
        return (bits & 0xeU) == 0xeU ? Rkey{known.value ^ bits} : known;
    }
    std::uint64_t address(std::uint16_t offset) { return kBase + offset % (pages.span().size() + 64) - 32; }
    // Receives a packet. Its opcode is mostly known, and its fields are nearly right, so that the later checks are
    // reached.
    void receive() {
        Packed bytes;
        const std::uint8_t opcode = input.byte();
        wire::Bth bth;
        bth.opcode = static_cast<std::uint8_t>(
            (opcode & 0x1fU) | ((opcode & 0x80U) != 0 ? opcode & 0xe0U : static_cast<unsigned>(qp.service())));
        const std::uint8_t flags = input.byte();
        const bool request = (bth.opcode & 0x1fU) < 0x0dU || (bth.opcode & 0x1fU) > 0x12U;
        bth.psn =
            (request ? qp.responder().expected_psn() : oldest).plus((flags & 0xfU) + Psn::kMask - 1);  // -2 ... 13
        bth.ack_request = (flags & 0x10U) != 0;
        bth.solicited = (flags & 0x20U) != 0;
        if ((config & 4U) != 0 && kCnp == (opcode & kCnp)) {
            bth.opcode = wire::opcode_of(wire::Service::Cnp, wire::Operation::CongestionNotification);
        }
        bth.pad_count = static_cast<std::uint8_t>((flags & 0x40U) != 0 ? input.byte() & 3U : 0U);
        const wire::OpcodeTraits* const traits = wire::find_opcode(bth.opcode);
        append(bytes, bth);
        if (traits != nullptr && traits->headers.has<wire::Xrceth>()) {
            append(bytes, wire::Xrceth{numbers[(flags & 0x80U) != 0 ? input.byte() % numbers.size() : 0]});
        }
        if (traits != nullptr && traits->headers.has<wire::Feth>()) {
            append(bytes, wire::Feth{input.byte(), static_cast<std::uint8_t>(flags >> 6U)});
        }
        if (traits != nullptr && traits->headers.has<wire::Reth>()) {
            append(bytes,
                   wire::Reth{address(input.take<std::uint16_t>()), key(input.byte()), input.take<std::uint16_t>()});
        }
        if (traits != nullptr && traits->headers.has<wire::AtomicEth>()) {
            append(bytes, wire::AtomicEth{address(input.take<std::uint16_t>()), key(input.byte()), 1, 2});
        }
        if (traits != nullptr && traits->headers.has<wire::Ieth>()) {
            append(bytes, wire::Ieth{key(input.byte())});
        }
        if (traits != nullptr && traits->headers.has<wire::CnpReserved>()) {
            append(bytes, wire::CnpReserved{});
        }
        const std::uint8_t kind = input.byte();
        const Datagram rest = input.bytes(kind % 40U);
        std::copy(rest.begin(), rest.end(), bytes.all.begin() + static_cast<std::ptrdiff_t>(bytes.size));
        bytes.size += rest.size();
        if (kind >= 0x80 && traits != nullptr && traits->payload == wire::Payload::Carried) {
            bytes.size = traits->header_bytes + 256U;
        }
        bytes.size += wire::kIcrcBytes;
        auto buffer =
            std::make_unique<Datagram>(bytes.all.begin(), bytes.all.begin() + static_cast<std::ptrdiff_t>(bytes.size));
        const wire::Parsed<wire::Packet> packet = wire::Packet::parse(*buffer);
        if (packet.ok() && (config & 8U) != 0 && (kind & 1U) != 0) {
            qp.on_marked(packet.value(), now);
        }
        if (packet.ok() && qp.on_packet(packet.value(), {*buffer, buffer.get()}, now)) {
            Datagram* const name = buffer.get();
            kept.emplace(name, std::move(buffer));
        }
    }
    struct Packed {
        std::array<std::uint8_t, 512> all{};
        std::size_t size = 0;
    };
    template <class Header>
    static void append(Packed& bytes, const Header& header) {
        emit_at(bytes.all.data() + bytes.size, header);
        bytes.size += Header::kBytes;
    }

    void post() {
        SendRequest request;
        request.opcode = static_cast<WorkOpcode>(input.byte() % static_cast<unsigned>(WorkOpcode::Count));
        const std::uint8_t flags = input.byte();
        request.signalled = (flags & 1U) != 0;
        request.fence = (flags & 2U) != 0;
        request.is_inline = (flags & 4U) != 0;
        request.invalidate = key(flags);
        request.bind = {key(flags), Lkey{region.value}, kBase, 256, kRemote, (flags & 8U) != 0};
        request.flush.bytes = flags;
        request.remote_srqn = Srqn{flags};
        const std::uint32_t bytes = (flags & 0x10U) != 0 ? input.take<std::uint16_t>() % 2000U : 8U;
        const std::array<Sge, 1> sges{Sge{address(input.take<std::uint16_t>()), bytes, Lkey{region.value}}};
        request.sges = sges;
        request.inline_bytes = pages.span().first(8);
        (void)qp.post_send(request);
    }
    void post_receive() {
        const std::array<Sge, 1> sges{Sge{address(input.take<std::uint16_t>()), input.byte() * 4U, Lkey{region.value}}};
        (void)qp.post_receive({1, sges});
        (void)queues[sges[0].bytes / 4U % queues.size()].post({1, sges});
    }
    // Ends one of the queues that the target refers to, and makes it again with another number, or in another domain.
    void exchange_queue() {
        const std::uint8_t bits = input.byte();
        const std::size_t one = bits % queues.size();
        xrc.remove(numbers[one]);
        numbers[one] = add(queues[one], (bits & 4U) != 0 ? other_domain : domain);
    }
    Srqn add(ReceiveQueue& queue, Xrcd to) { return xrc.add(to, {&queue, &completions, pd, {}}).value(); }
    void transmit() {
        std::array<OutPacket, 4> burst;
        const std::size_t count = qp.poll_transmit(std::span(burst).first(input.byte() % 5U), now);
        unsigned sum = 0;
        for (const OutPacket& packet : std::span(burst).first(count)) {
            for (const auto piece : packet.payload.all()) {
                sum = std::accumulate(piece.begin(), piece.end(), sum);
            }
        }
        checksum = checksum + sum;
        oldest = qp.requester().unacknowledged_psn();
    }
    void change_state() {
        if (is_target() && (config & 16U) != 0) {
            exchange_queue();
            return;
        }
        const auto to = static_cast<QpState>(input.byte() % static_cast<unsigned>(QpState::Count));
        (void)qp.modify(to, {}, {});
        if (qp.state() != QpState::Rts && (input.byte() & 1U) != 0) {
            bring_to_rts();
        }
    }
    void step() {
        switch (input.byte() % 8U) {
            case 0:
                post();
                break;
            case 1:
                post_receive();
                break;
            case 2:
                transmit();
                break;
            case 3:
                now = now + microseconds(input.take<std::uint16_t>());
                qp.on_timeout(now);
                break;
            case 4:
                change_state();
                break;
            default:
                receive();
                break;
        }
        settle();
    }
    void settle() {
        qp.check_invariants();
        while (qp.poll_event().has_value()) {
        }
        std::array<Completion, 16> some;
        while (completions.poll(some) != 0) {
        }
        std::array<void*, 4> cookies{};
        while (const std::size_t count = held.poll_released(cookies)) {
            for (std::size_t i = 0; i < count; ++i) {
                if (kept.erase(static_cast<Datagram*>(cookies[i])) != 1) {
                    std::abort();
                }
            }
        }
        if (kept.size() != held.in_use()) {
            std::abort();
        }
    }

    Input& input;
    std::uint8_t config;
    test::GuardedPages pages{1};
    MemoryTable memory{8, {1, 2}};
    Pd pd = memory.create_pd();
    CompletionQueue completions{4096};
    RcCounters counters;
    HeldPackets held{16};
    std::map<Datagram*, std::unique_ptr<Datagram>> kept;
    Rkey region{};
    Rkey window{};
    XrcTable xrc;
    Xrcd domain = xrc.create_domain();
    Xrcd other_domain = xrc.create_domain();
    std::array<ReceiveQueue, 2> queues{ReceiveQueue{4, 1}, ReceiveQueue{4, 1}};
    std::array<Srqn, 2> numbers{add(queues[0], domain), add(queues[1], domain)};
    Instant now{1};
    Psn oldest{};
    unsigned checksum = 0;
    QueuePair qp;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    World world(input);
    while (!input.empty()) {
        world.step();
    }
    (void)world.qp.modify(QpState::Reset, {}, {});
    world.settle();
    if (world.held.in_use() != 0) {
        std::abort();
    }
    return 0;
}
