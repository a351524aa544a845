// The messages between client and server of cairn-perf, in the private data of their connections.
#pragma once

#include <optional>
#include <span>

#include "apps/perf/options.hpp"
#include "lib/base/endian.hpp"
#include "lib/base/parsed.hpp"
#include "lib/base/types.hpp"

namespace cairn::perf {

constexpr std::uint32_t kMagic = 0x43504631;         // "CPF1"
constexpr std::uint32_t kLeaveMagic = 0x43504c31;    // "CPL1"
constexpr std::uint32_t kPathMtuMagic = 0x43504d31;  // "CPM1"
constexpr std::uint8_t kVersion = 2;

// Memory of one end for the operations of the other.
struct RemoteMemory {
    std::uint64_t address = 0;
    Rkey rkey{};
};

// The magic of a pass, which a client gets and shows by SIDR before anything else. The question has no pass.
constexpr std::uint32_t kPassMagic = 0x43505031;  // "CPP1"
struct RawPass {
    Be32 magic;
    Be32 reserved;
    Be64 pass;
};
static_assert(sizeof(RawPass) == 16 && alignof(RawPass) == 1);

// From client to server: the purpose of the connection.
struct Hello {
    Operation operation = Operation::Write;
    Test test = Test::Bandwidth;
    bool check = false;
    bool both_ways = false;  // the server does the same operation to the client
    bool last = false;       // the client asks for no further connections
    std::uint32_t message_bytes = 0;
    std::uint32_t slots = 1;  // messages that fit the memory
    std::uint32_t share = 1;  // messages outstanding on this connection
    RemoteMemory memory{};    // the client's, for the answers of a WRITE latency test
    Qpn qpn{};                // the client's queue pair of datagrams; takes the place of the key
    std::uint64_t pass = 0;
};
struct RawHello {
    Be32 magic;
    std::uint8_t version;
    std::uint8_t operation;
    std::uint8_t test;
    std::uint8_t flags;  // check 1, last 2, both ways 4
    Be32 message_bytes;
    Be32 slots;
    Be32 share;
    Be32 rkey;
    Be64 address;
    Be64 pass;
};
static_assert(sizeof(RawHello) == 40 && alignof(RawHello) == 1);

// From server to client, in the acceptance: the server's memory for `slots` messages.
struct RawAnswer {
    Be32 magic;
    Be32 rkey;
    Be64 address;
};
static_assert(sizeof(RawAnswer) == 16 && alignof(RawAnswer) == 1);

// From server to client, in the refusal: the largest path MTU that the server accepts.
struct RawPathMtu {
    Be32 magic;
    Be32 path_mtu_bytes;
};
static_assert(sizeof(RawPathMtu) == 8 && alignof(RawPathMtu) == 1);

// From client to server, by SIDR: no more messages come to this queue pair. Only the client got the key.
struct RawLeave {
    Be32 magic;
    Be32 qpn;
    Be32 rkey;
};
static_assert(sizeof(RawLeave) == 12 && alignof(RawLeave) == 1);

// From server to client, at the end: the number of SENDs received, and of SENDs with wrong contents. In a test of both
// directions also the operations that it completed and their time.
struct RawFarewell {
    Be32 magic;
    Be32 reserved;
    Be64 received;
    Be64 bad;
    Be64 completed;
    Be64 took_ns;
};
static_assert(sizeof(RawFarewell) == 40 && alignof(RawFarewell) == 1);

template <class Raw>
std::span<const std::uint8_t> bytes_of(const Raw& raw) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
}

[[nodiscard]] inline RawHello raw_of(const Hello& hello) noexcept {
    const auto flags =
        static_cast<std::uint8_t>((hello.check ? 1U : 0U) | (hello.last ? 2U : 0U) | (hello.both_ways ? 4U : 0U));
    return {Be32{kMagic},
            kVersion,
            static_cast<std::uint8_t>(hello.operation),
            static_cast<std::uint8_t>(hello.test),
            flags,
            Be32{hello.message_bytes},
            Be32{hello.slots},
            Be32{hello.share},
            Be32{hello.qpn.value != 0 ? hello.qpn.value : hello.memory.rkey.value},
            Be64{hello.memory.address},
            Be64{hello.pass}};
}

// Returns the message at the front of private data; nullopt if the data are no such message.
template <class Raw>
[[nodiscard]] std::optional<Raw> read_message(std::span<const std::uint8_t> data,
                                              std::uint32_t magic = kMagic) noexcept {
    if (data.size() < sizeof(Raw)) {
        return std::nullopt;
    }
    const Raw raw = read_raw<Raw>(data.data());
    return raw.magic.get() == magic ? std::optional(raw) : std::nullopt;
}

// Returns the message; nullopt for another program or version.
[[nodiscard]] inline std::optional<Hello> parse_hello(std::span<const std::uint8_t> data) noexcept {
    const std::optional<RawHello> raw = read_message<RawHello>(data);
    if (!raw || raw->version != kVersion || raw->operation >= static_cast<std::uint8_t>(Operation::Count) ||
        raw->test >= static_cast<std::uint8_t>(Test::Count)) {
        return std::nullopt;
    }
    return Hello{static_cast<Operation>(raw->operation),
                 static_cast<Test>(raw->test),
                 (raw->flags & 1U) != 0,
                 (raw->flags & 4U) != 0,
                 (raw->flags & 2U) != 0,
                 raw->message_bytes.get(),
                 raw->slots.get(),
                 raw->share.get(),
                 {raw->address.get(), Rkey{raw->rkey.get()}},
                 Qpn{raw->rkey.get() & 0xffffffU},
                 raw->pass.get()};
}

}  // namespace cairn::perf
