// The extension headers between BTH and payload (IBTA vol. 1, 9.3; XRCETH: annex A14; CNP: annex A17, A17.9.3). AETH
// and FETH have files of their own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "lib/wire/drops.hpp"

namespace cairn::wire {

// Reads the header at the start of `bytes`, or returns a reason. It writes to the header's final place. A copy of a
// structure that was just written piece by piece would wait for the stores.
template <class Header>
[[nodiscard]] std::optional<Drop> read_header(std::span<const std::uint8_t> bytes, Header& header) noexcept {
    if (bytes.size() < Header::kBytes) {
        return Drop::Truncated;
    }
    const auto raw = read_raw<typename Header::Raw>(bytes.data());
    if constexpr (requires { Header::read(raw, header); }) {
        return Header::read(raw, header);
    } else {
        header = Header::parse(raw);
        return std::nullopt;
    }
}

struct RawDeth {
    Be32 qkey;
    std::uint8_t reserved;
    Be24 source_qpn;
};
static_assert(sizeof(RawDeth) == 8 && alignof(RawDeth) == 1);

// Datagram: the sender, and the Q_Key that the receiver's queue pair expects.
struct Deth {
    using Raw = RawDeth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    Qkey qkey{};
    Qpn source_qpn{};

    [[nodiscard]] static Deth parse(const Raw& raw) noexcept {
        return {Qkey{raw.qkey.get()}, Qpn{raw.source_qpn.get()}};
    }
    void emit(Raw& raw) const noexcept { raw = {Be32{qkey.value}, 0, Be24{source_qpn.value}}; }

    friend bool operator==(const Deth&, const Deth&) noexcept = default;
};

struct RawReth {
    Be64 address;
    Be32 rkey;
    Be32 dma_bytes;
};
static_assert(sizeof(RawReth) == 16 && alignof(RawReth) == 1);

// RDMA: the remote range of the whole WRITE or READ.
struct Reth {
    using Raw = RawReth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint64_t address = 0;
    Rkey rkey{};
    std::uint32_t dma_bytes = 0;

    [[nodiscard]] static Reth parse(const Raw& raw) noexcept {
        return {raw.address.get(), Rkey{raw.rkey.get()}, raw.dma_bytes.get()};
    }
    void emit(Raw& raw) const noexcept { raw = {Be64{address}, Be32{rkey.value}, Be32{dma_bytes}}; }

    friend bool operator==(const Reth&, const Reth&) noexcept = default;
};

struct RawAtomicEth {
    Be64 address;
    Be32 rkey;
    Be64 swap_or_add;
    Be64 compare;
};
static_assert(sizeof(RawAtomicEth) == 28 && alignof(RawAtomicEth) == 1);

struct AtomicEth {
    using Raw = RawAtomicEth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint64_t address = 0;
    Rkey rkey{};
    std::uint64_t swap_or_add = 0;
    std::uint64_t compare = 0;  // FETCH_ADD ignores it

    [[nodiscard]] static AtomicEth parse(const Raw& raw) noexcept {
        return {raw.address.get(), Rkey{raw.rkey.get()}, raw.swap_or_add.get(), raw.compare.get()};
    }
    void emit(Raw& raw) const noexcept { raw = {Be64{address}, Be32{rkey.value}, Be64{swap_or_add}, Be64{compare}}; }

    friend bool operator==(const AtomicEth&, const AtomicEth&) noexcept = default;
};

struct RawAtomicAckEth {
    Be64 original;
};
static_assert(sizeof(RawAtomicAckEth) == 8 && alignof(RawAtomicAckEth) == 1);

struct AtomicAckEth {
    using Raw = RawAtomicAckEth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint64_t original = 0;  // value in memory before the operation

    [[nodiscard]] static AtomicAckEth parse(const Raw& raw) noexcept { return {raw.original.get()}; }
    void emit(Raw& raw) const noexcept { raw = {Be64{original}}; }

    friend bool operator==(const AtomicAckEth&, const AtomicAckEth&) noexcept = default;
};

struct RawImmDt {
    Be32 data;
};
static_assert(sizeof(RawImmDt) == 4 && alignof(RawImmDt) == 1);

struct ImmDt {
    using Raw = RawImmDt;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint32_t data = 0;

    [[nodiscard]] static ImmDt parse(const Raw& raw) noexcept { return {raw.data.get()}; }
    void emit(Raw& raw) const noexcept { raw = {Be32{data}}; }

    friend bool operator==(const ImmDt&, const ImmDt&) noexcept = default;
};

struct RawIeth {
    Be32 rkey;
};
static_assert(sizeof(RawIeth) == 4 && alignof(RawIeth) == 1);

// SEND with Invalidate: the receiver's key, which the completion invalidates.
struct Ieth {
    using Raw = RawIeth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    Rkey rkey{};

    [[nodiscard]] static Ieth parse(const Raw& raw) noexcept { return {Rkey{raw.rkey.get()}}; }
    void emit(Raw& raw) const noexcept { raw = {Be32{rkey.value}}; }

    friend bool operator==(const Ieth&, const Ieth&) noexcept = default;
};

struct RawXrceth {
    std::uint8_t reserved;
    Be24 srqn;
};
static_assert(sizeof(RawXrceth) == 4 && alignof(RawXrceth) == 1);

// XRC: the shared receive queue of the request.
struct Xrceth {
    using Raw = RawXrceth;
    static constexpr std::size_t kBytes = sizeof(Raw);

    Srqn srqn{};

    [[nodiscard]] static Xrceth parse(const Raw& raw) noexcept { return {Srqn{raw.srqn.get()}}; }
    void emit(Raw& raw) const noexcept { raw = {0, Be24{srqn.value}}; }

    friend bool operator==(const Xrceth&, const Xrceth&) noexcept = default;
};

// The rest of a congestion notification: sent as zeros, ignored on receipt.
struct CnpReserved {
    using Raw = std::array<std::uint8_t, 16>;
    static constexpr std::size_t kBytes = sizeof(Raw);

    [[nodiscard]] static CnpReserved parse(const Raw&) noexcept { return {}; }
    void emit(Raw& raw) const noexcept { raw = {}; }

    friend bool operator==(const CnpReserved&, const CnpReserved&) noexcept = default;
};

}  // namespace cairn::wire
