#include "rpc/sim/copyrpc_stranger.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::sim {

namespace {

constexpr std::uint32_t kReceives = 32;
constexpr std::uint32_t kFewBlocks = 4;

using copyrpc::kBlockBytes;

}  // namespace

std::span<const std::uint8_t> CopyrpcStranger::greeting(Contact& contact) {
    const std::uint32_t ring = contact.asked ? 4096U << random().below(5) : 4096;
    const auto receives = static_cast<std::uint16_t>(contact.asked ? random().between(4, 64) : 16);
    copyrpc::Hello{ring, receives, region().address(), region().rkey(), 0, flow_, region().rkey()}.emit(hello_);
    return {reinterpret_cast<const std::uint8_t*>(&hello_), sizeof(hello_)};
}

// Posts receive requests, or never does.
void CopyrpcStranger::on_up(Contact& contact) {
    for (std::uint64_t i = random().below(2) * kReceives; i > 0; --i) {
        (void)contact.qp->post_receive(verbs::ReceiveRequest{});
    }
}

// Composes the connection's next batch of requests. Returns its blocks.
std::uint32_t CopyrpcStranger::compose(Contact& contact) {
    const std::span<std::uint8_t> room = memory().subspan(kBytes);
    std::fill(room.begin(), room.end(), std::uint8_t{0});
    const auto messages = static_cast<std::uint16_t>(random().between(0, 3));
    copyrpc::RawBatchHeader raw;
    copyrpc::BatchHeader{static_cast<std::uint16_t>(contact.sequence++), messages, 0, 0, 0}.emit(raw);
    std::memcpy(room.data(), &raw, sizeof(raw));
    std::uint32_t blocks = 1;
    for (std::uint16_t i = 0; i < messages; ++i) {
        std::array<std::uint8_t, 40> payload{};
        copyrpc::Message request;
        request.call = static_cast<std::uint32_t>(random().below(1U << 31U));
        request.charge = static_cast<std::uint16_t>(random().between(2, kFewBlocks));
        request.type = static_cast<std::uint8_t>(random().between(1, 7));
        request.payload = std::span(payload).first(random().below(payload.size() + 1));
        if (random().chance(kMillion / 4)) {
            request.extension = copyrpc::Extension{random().next(), static_cast<std::uint32_t>(random().next())};
        }
        scramble(payload);
        const std::span<std::uint8_t> body = request.emit(room.subspan(std::size_t{blocks} * kBlockBytes));
        std::copy(request.payload.begin(), request.payload.end(), body.begin());
        blocks += request.blocks();
    }
    return blocks;
}

void CopyrpcStranger::speak(Contact& contact) {
    const auto peer = copyrpc::Hello::parse(std::span(contact.said.octets).first(contact.said.size));
    if (!peer) {
        return;
    }
    const std::uint32_t blocks = compose(contact);
    // Sometimes writes only the first block: the others would then be old bytes of the ring.
    const std::uint32_t written = contact.sequence % 8 == 5 ? 1 : blocks;
    spoil(contact, memory().subspan(kBytes, std::size_t{blocks} * kBlockBytes));
    if (contact.place + blocks > peer->ring_bytes / kBlockBytes) {
        return;
    }
    const bool any_immediate = contact.manner == Manner::Babbles && random().chance(kMillion / 2);
    const std::array<verbs::Sge, 1> pieces{region().sge(kBytes, written * kBlockBytes)};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWriteWithImmediate;
    request.sges = pieces;
    request.immediate = any_immediate ? static_cast<std::uint32_t>(random().next()) : blocks;
    request.remote_address = peer->address + std::uint64_t{contact.place} * kBlockBytes;
    request.rkey = peer->rkey;
    post(contact, request);
    contact.place += blocks;
}

}  // namespace cairn::sim
