// Messages of a client and its server outside of blocks. The client has an entry at the server, and the server has a
// control word at the client. Each is one WRITE of one packet.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lib/base/endian.hpp"
#include "rpc/scalerpc/block.hpp"

namespace cairn::scalerpc {

struct RawEntry {
    Be64 address;
    Be32 first;
    Be32 count;
    Be32 longest;
    Be32 acknowledged;
    Be64 reserved;
};
static_assert(sizeof(RawEntry) == 32 && alignof(RawEntry) == 1);

// <address, batch> of the paper (3.3). The requests [first, first + count) wait at the client, request `first` in the
// block at `address`. `longest` is the largest size of one of them in its block. The client has left all slices up to
// epoch `acknowledged`, and writes nothing for them any more.
struct Entry {
    std::uint64_t address = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t longest = 0;
    std::uint32_t acknowledged = 0;

    [[nodiscard]] static Entry parse(const std::uint8_t* from) noexcept {
        RawEntry raw;
        std::memcpy(&raw, from, sizeof(raw));
        return {raw.address.get(), raw.first.get(), raw.count.get(), raw.longest.get(), raw.acknowledged.get()};
    }
    [[nodiscard]] RawEntry raw() const noexcept {
        return {Be64{address}, Be32{first}, Be32{count}, Be32{longest}, Be32{acknowledged}, Be64{0}};
    }
    // True if the entry names valid requests of a session. `next`: the session's next request; `base`: where its blocks
    // begin.
    [[nodiscard]] bool is_sound(const BlockShape& shape, std::uint64_t base, std::uint32_t next) const noexcept {
        return first == next && count <= shape.blocks && longest >= sizeof(RawTrailer) && longest <= shape.bytes &&
               address == base + std::uint64_t{shape.index_of(first)} * shape.bytes;
    }

    friend bool operator==(const Entry&, const Entry&) noexcept = default;
};

struct RawControl {
    Be64 address;
    Be32 rkey;
    Be32 kind;
    Be32 epoch;
    Be32 accepted;
    Be32 count;
    Be32 reserved;
};
static_assert(sizeof(RawControl) == 32 && alignof(RawControl) == 1);

// News that travel alone, without an answer. `count` grows with each.
struct Control {
    std::uint32_t count = 0;
    News news{};

    // Parses a control word. Returns nothing if its kind is invalid.
    [[nodiscard]] static std::optional<Control> parse(const std::uint8_t* from) noexcept {
        RawControl raw;
        std::memcpy(&raw, from, sizeof(raw));
        const std::uint32_t kind = raw.kind.get();
        if (kind > static_cast<std::uint32_t>(News::Kind::Notice)) {
            return std::nullopt;
        }
        return Control{raw.count.get(),
                       {static_cast<News::Kind>(kind),
                        raw.epoch.get(),
                        raw.accepted.get(),
                        {raw.address.get(), Rkey{raw.rkey.get()}}}};
    }
    [[nodiscard]] RawControl raw() const noexcept {
        return {Be64{news.grant.address},
                Be32{news.grant.rkey.value},
                Be32{static_cast<std::uint32_t>(news.kind)},
                Be32{news.epoch},
                Be32{news.accepted},
                Be32{count},
                Be32{0}};
    }
};

// Private data of REQ and REP. A client's greeting names the places of its staged requests and its answers.
struct RawHello {
    Be32 magic;
    std::uint8_t version;
    std::uint8_t block_log2;
    std::uint8_t blocks_log2;
    std::uint8_t cohort;
    Be64 staged_address;
    Be64 answers_address;
    Be32 staged_rkey;
    Be32 answers_rkey;
};
static_assert(sizeof(RawHello) == 32 && alignof(RawHello) == 1);

struct Hello {
    static constexpr std::uint32_t kMagic = 0x53525043;  // "SRPC"
    static constexpr std::uint8_t kVersion = 1;

    BlockShape shape{};
    Grant staged{};   // from a client: its staged requests, for READs
    Grant answers{};  // from a client: its control words, with its answers kControlBytes after them
    // From a client: its group at servers with synchronised slices. From a server: 0 if its slices are its own.
    std::uint8_t cohort = 0;

    // Parses a greeting. Returns nothing if the bytes are no greeting of this version, or the shape is not valid.
    [[nodiscard]] static std::optional<Hello> parse(std::span<const std::uint8_t> private_data) noexcept {
        RawHello raw;
        if (private_data.size() < sizeof(raw)) {
            return std::nullopt;
        }
        std::memcpy(&raw, private_data.data(), sizeof(raw));
        if (raw.magic.get() != kMagic || raw.version != kVersion || raw.block_log2 > 31 || raw.blocks_log2 > 31) {
            return std::nullopt;
        }
        const Hello hello{{1U << raw.block_log2, 1U << raw.blocks_log2},
                          {raw.staged_address.get(), Rkey{raw.staged_rkey.get()}},
                          {raw.answers_address.get(), Rkey{raw.answers_rkey.get()}},
                          raw.cohort};
        return hello.shape.is_valid() ? std::optional<Hello>(hello) : std::nullopt;
    }
    [[nodiscard]] RawHello raw() const noexcept {
        return {Be32{kMagic},
                kVersion,
                static_cast<std::uint8_t>(std::countr_zero(shape.bytes)),
                static_cast<std::uint8_t>(std::countr_zero(shape.blocks)),
                cohort,
                Be64{staged.address},
                Be64{answers.address},
                Be32{staged.rkey.value},
                Be32{answers.rkey.value}};
    }
};

constexpr std::uint32_t kEntryBytes = sizeof(RawEntry);
constexpr std::uint32_t kWelcomeOffset = sizeof(RawControl);     // the welcome has a word of its own
constexpr std::uint32_t kControlBytes = 2 * sizeof(RawControl);  // before a client's answers

}  // namespace cairn::scalerpc
