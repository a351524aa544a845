#include "lib/wire/packet.hpp"

#include <algorithm>

namespace cairn::wire {

namespace {

constexpr std::size_t kWordBytes = 4;  // packets are whole words; the pad fills the last one

}  // namespace

Packet::Packet(Service service, Operation operation) noexcept : traits_(find_opcode(opcode_of(service, operation))) {
    CAIRN_ASSERT(traits_ != nullptr);
    bth_.opcode = traits_->opcode();
}

Parsed<Packet> Packet::parse(std::span<const std::uint8_t> udp_payload) noexcept {
    Packet packet;
    if (const std::optional<Drop> reason = packet.read(udp_payload)) {
        return *reason;
    }
    return packet;
}

std::optional<Drop> Packet::read(std::span<const std::uint8_t> udp_payload) noexcept {
    if (udp_payload.size() < Bth::kBytes + kIcrcBytes) {
        return Drop::Truncated;
    }
    const auto raw = read_raw<RawBth>(udp_payload.data());
    if (Bth::version_of(raw) != 0) {
        return Drop::BadVersion;
    }
    const OpcodeTraits* const traits = find_opcode(raw.opcode);
    if (traits == nullptr) {
        return Drop::UnknownOpcode;
    }
    traits_ = traits;
    bth_.load(raw);
    std::span<const std::uint8_t> rest = udp_payload.first(udp_payload.size() - kIcrcBytes).subspan(Bth::kBytes);
    if (traits->header_bytes != Bth::kBytes) {
        if (const std::optional<Drop> reason = take_headers(rest)) {
            return reason;
        }
    }
    if (traits->payload == Payload::None && !rest.empty()) {
        return Drop::UnexpectedPayload;
    }
    if (rest.size() % kWordBytes != 0) {
        return Drop::BadLength;
    }
    if (pad_bytes() > rest.size()) {
        return Drop::BadPad;
    }
    payload_ = rest.first(rest.size() - pad_bytes());
    return std::nullopt;
}

std::optional<Drop> Packet::take_headers(std::span<const std::uint8_t>& rest) noexcept {
    std::optional<Drop> reason;
    const auto take = [&]<class Header>(Header& header) noexcept {
        if (!traits_->headers.has<Header>()) {
            return true;
        }
        reason = read_header(rest, header);
        rest = reason ? rest : rest.subspan(Header::kBytes);
        return !reason;
    };
    std::apply([&](auto&... header) noexcept { (void)(take(header) && ...); }, headers_);
    return reason;
}

std::size_t Packet::emit(std::span<std::uint8_t> out) const noexcept {
    CAIRN_ASSERT(out.size() >= traits_->header_bytes);
    emit_at(out.data(), bth_);
    std::uint8_t* at = out.data() + Bth::kBytes;
    const auto put = [&]<class Header>(const Header& header) noexcept {
        if (traits_->headers.has<Header>()) {
            emit_at(at, header);
            at += Header::kBytes;
        }
    };
    std::apply([&](const auto&... header) noexcept { (put(header), ...); }, headers_);
    return traits_->header_bytes;
}

void Packet::set_bth(const Bth& bth) noexcept {
    bth_ = bth;
    bth_.opcode = traits_->opcode();
    bth_.pad_count = pad_for(payload_.size());
}

void Packet::set_payload(std::span<const std::uint8_t> payload) noexcept {
    CAIRN_ASSERT(traits_->payload == Payload::Carried || payload.empty());
    payload_ = payload;
    bth_.pad_count = pad_for(payload.size());
}

bool operator==(const Packet& one, const Packet& other) noexcept {
    const auto same = [&]<class Header>(const Header& header) noexcept {
        return !one.traits_->headers.has<Header>() || header == std::get<Header>(other.headers_);
    };
    return one.bth_ == other.bth_ &&
           std::apply([&](const auto&... header) noexcept { return (same(header) && ...); }, one.headers_) &&
           std::equal(one.payload_.begin(), one.payload_.end(), other.payload_.begin(), other.payload_.end());
}

}  // namespace cairn::wire
