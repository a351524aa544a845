// Attacks on listeners of connections: requests that are never followed up, in any host's name.
#include <array>
#include <optional>

#include "tests/hostile/attacks.hpp"

namespace cairn::hostile {

namespace {

constexpr unsigned kManyHosts = 100;
constexpr std::uint32_t kLargeBytes = 4U << 20U;

// The private data in which cairn-perf's client describes its connection.
struct RawPerfHello {
    Be32 magic{0x43504631};
    std::uint8_t version = 2;
    std::uint8_t operation = 1;
    std::uint8_t test = 0;
    std::uint8_t flags = 0;
    Be32 message_bytes;
    Be32 slots{1};
    Be32 share{1};
    Be32 rkey{};
    Be64 address{};
    Be64 pass;
};
static_assert(sizeof(RawPerfHello) == 40 && alignof(RawPerfHello) == 1);

// A client asks with this whether it has an address. The answer carries the pass that connections of the address need.
struct RawPerfPass {
    Be32 magic{0x43505031};
    Be32 reserved{};
    Be64 pass{};
};
static_assert(sizeof(RawPerfPass) == 16 && alignof(RawPerfPass) == 1);

// Returns the pass that the target gives to the address, which the attacker can read; a guess if it gives none.
std::uint64_t pass_of(Attacker& attacker, Host& host) {
    const RawPerfPass question;
    const wire::SidrReq req =
        sidr_question(static_cast<std::uint32_t>(attacker.random()), attacker.options().service, host.address(),
                      attacker.options().target, {reinterpret_cast<const std::uint8_t*>(&question), sizeof(question)});
    host.drain();
    if (attacker.send(host, management({attacker.random(), req}))) {
        const std::optional<wire::CmMad> answer = management_of(attacker.await(host));
        if (answer && std::holds_alternative<wire::SidrRep>(answer->message)) {
            return read_raw<RawPerfPass>(std::get<wire::SidrRep>(answer->message).private_data.data()).pass.get();
        }
    }
    return attacker.random();
}

wire::Req request(Attacker& attacker, const Host& from, std::uint32_t message_bytes, std::uint64_t pass) {
    RawPerfHello hello;
    hello.message_bytes.set(message_bytes);
    hello.pass.set(pass);
    return connection_request(static_cast<std::uint32_t>(attacker.random()),
                              Qpn{static_cast<std::uint32_t>(attacker.random() & 0xffffffU)},
                              attacker.options().service, from.address(), attacker.options().target,
                              {reinterpret_cast<const std::uint8_t*>(&hello), sizeof(hello)});
}

bool ask(Attacker& attacker, Host& from, std::uint32_t message_bytes, std::uint64_t pass) {
    return attacker.send(from, management({attacker.random(), request(attacker, from, message_bytes, pass)}));
}

// Returns the pass of each of the strangers.
std::array<std::uint64_t, kHosts> passes_of(Attacker& attacker) {
    std::array<std::uint64_t, kHosts> passes{};
    for (unsigned i = 0; i < kHosts; ++i) {
        passes[i] = pass_of(attacker, attacker.stranger(i));
    }
    return passes;
}

// Requests in the names of hosts that never asked.
void req_bystanders(Attacker& attacker) {
    for (unsigned i = 0; ask(attacker, attacker.bystander(i % kHosts), 64, attacker.random()); ++i) {
    }
}

// Requests in the names of so many bystanders that none of them has a place when it asks again.
void req_many_hosts(Attacker& attacker) {
    for (unsigned i = 0; ask(attacker, attacker.bystander(i % kManyHosts), 64, attacker.random()); ++i) {
    }
}

// Requests that each ask for large memory.
void req_large(Attacker& attacker) {
    for (unsigned i = 0; ask(attacker, attacker.bystander(i % kHosts), kLargeBytes, attacker.random()); ++i) {
    }
}

// Requests whose answers are read and never followed up.
void half_open(Attacker& attacker) {
    const std::array passes = passes_of(attacker);
    for (unsigned i = 0; ask(attacker, attacker.stranger(i % kHosts), kLargeBytes, passes[i % kHosts]); ++i) {
        Bytes room(4096);
        while (const std::size_t bytes = attacker.stranger(i % kHosts).receive(room)) {
            const std::optional<wire::CmMad> answer = management_of({room.data(), bytes});
            if (answer && std::holds_alternative<wire::Rep>(answer->message)) {
                attacker.reached();
            }
        }
    }
}

// Connections that are made and then do nothing: they hold on to their resources.
void established(Attacker& attacker) {
    const std::array passes = passes_of(attacker);
    for (unsigned i = 0; !attacker.over(); ++i) {
        Host& from = attacker.stranger(i % kHosts);
        from.drain();
        const wire::Req req = request(attacker, from, kLargeBytes, passes[i % kHosts]);
        const std::uint64_t transaction = attacker.random();
        if (!attacker.send(from, management({transaction, req}))) {
            return;
        }
        const std::optional<wire::CmMad> answer = management_of(attacker.await(from));
        if (answer && std::holds_alternative<wire::Rep>(answer->message)) {
            wire::Rtu rtu;
            rtu.ids = {req.local_comm_id, std::get<wire::Rep>(answer->message).ids.local};
            attacker.reached();
            if (!attacker.send(from, management({transaction, rtu}))) {
                return;
            }
        }
    }
}

// Questions for datagram services in the names of others.
void sidr_bystanders(Attacker& attacker) {
    for (unsigned i = 0;; ++i) {
        Host& host = attacker.bystander(i % kHosts);
        const wire::SidrReq req = sidr_question(static_cast<std::uint32_t>(attacker.random()),
                                                attacker.options().service, host.address(), attacker.options().target);
        if (!attacker.send(host, management({attacker.random(), req}))) {
            return;
        }
    }
}

// Every message of the connection manager with guessed identifiers.
void guessed_ids(Attacker& attacker) {
    for (unsigned i = 0;; ++i) {
        const wire::CommIds ids{wire::CommId{static_cast<std::uint32_t>(attacker.random())},
                                wire::CommId{static_cast<std::uint32_t>(attacker.random())}};
        wire::CmMad mad{attacker.random(), {}};
        wire::Rej rej;
        wire::Dreq dreq;
        wire::Rep rep;
        rej.ids = dreq.ids = rep.ids = ids;
        rej.reason = wire::RejectReason::Consumer;
        switch (i % 3) {
            case 0:
                mad.message = rej;
                break;
            case 1:
                mad.message = dreq;
                break;
            default:
                mad.message = rep;
        }
        if (!attacker.send(attacker.bystander(i % kHosts), management(mad))) {
            return;
        }
    }
}

constexpr std::array kConnectionAttacks{
    Attack{"req-bystanders", req_bystanders, "REQs in the names of others"},
    Attack{"req-large", req_large, "REQs of others that ask for 4 MB each"},
    Attack{"req-many-hosts", req_many_hosts, "REQs in the names of ever other hosts"},
    Attack{"half-open", half_open, "REQs whose REPs are never followed up"},
    Attack{"established", established, "connections that are made and left"},
    Attack{"sidr-bystanders", sidr_bystanders, "SIDR questions in the names of others"},
    Attack{"guessed-ids", guessed_ids, "REJ, DREQ and REP with guessed identifiers"},
};

}  // namespace

std::span<const Attack> attacks_on_connections() {
    return kConnectionAttacks;
}

}  // namespace cairn::hostile
