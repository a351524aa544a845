// Attacks by requests: forged ones, and far too many of them.
#include <unistd.h>

#include <array>
#include <deque>
#include <thread>
#include <type_traits>

#include "fs/message/requests.hpp"
#include "tests/hostile/fs/guest.hpp"

namespace cairn::hostile {

namespace {

constexpr std::uint32_t kRights = 6;

// A channel, and the calls on it that must not succeed.
struct Caller {
    Caller(FsChannel&& parts, std::uint16_t to) noexcept
        : bell(std::move(parts.bell)),
          shard(to),
          shape(parts.segment.shape()),
          end(std::move(parts.segment), bell.get()) {}

    // Returns false if no slot is free.
    bool ask(FsAttacker& attacker, const fs::Request& request, fs::RequestHead head, bool fails = false) {
        const auto slot = end.take_slot();
        if (!slot) {
            return false;
        }
        const std::uint32_t bytes = fs::put_request(end.request(*slot), head, request);
        if (bytes == 0) {  // texts are too long
            end.request(*slot)[0] = 0xff;
        }
        must_fail[*slot] = fails;
        end.ask(*slot, bytes == 0 ? fs::kRequestBytes : bytes);
        ++attacker.tally.calls;
        return true;
    }
    bool ask(FsAttacker& attacker, const fs::Request& request) {
        return ask(attacker, request, {.shard = shard, .sequence = ++sequence, .table = 1});
    }
    // Hands every arrived answer to `sink`.
    template <class Sink>
    void collect(FsAttacker& attacker, const Sink& sink) {
        for (std::uint32_t slot = 0; slot != shape.slots; ++slot) {
            const auto answer = end.answer(slot);
            if (!answer) {
                continue;
            }
            fs::FieldReader in(*answer);
            fs::AnswerHead head;
            fs::AnswerHead::fields(in, head);
            attacker.tally.answers += head.error == 0 ? 1U : 0U;
            attacker.tally.leaks += head.error == 0 && must_fail[slot] ? 1U : 0U;
            sink(*answer);
            end.give_back(slot);
        }
    }

    OwnedFd bell;
    std::uint16_t shard;
    fs::ChannelShape shape;
    fs::ClientEnd end;
    std::uint32_t sequence = 0;
    std::array<bool, fs::ChannelShape::kMostSlots> must_fail{};
};

std::optional<Caller> caller_of(FsGuest& guest, std::uint16_t shard) {
    auto channel = guest.channel(shard);
    return channel ? std::optional<Caller>(std::in_place, std::move(*channel), shard) : std::nullopt;
}

struct OwnFile {
    fs::FileId id{};
    fs::Grant grant{};
};

// Opens a file of the attacker, at the shard that has its name.
OwnFile open_own(FsAttacker& attacker, std::deque<Caller>& callers, const std::string& name) {
    OwnFile own;
    for (Caller& caller : callers) {
        (void)caller.ask(attacker, fs::CreateRequest{kRoot, 0100600, kRights, false, name, {}});
        while (own.id == fs::FileId{} && !attacker.is_over() && !caller.end.any_answered()) {
            caller.end.wait(milliseconds(10));
        }
        caller.collect(attacker, [&own](std::span<const std::uint8_t> bytes) {
            fs::WalkAnswer answer;
            const auto head = fs::parse_answer(bytes, answer);
            if (head && head->error == 0 && answer.is_opened) {
                own = {answer.attributes.id, {kRights, answer.proof}};
            }
        });
    }
    return own;
}

// Puts values that may do harm into each field of a request.
class Forger {
public:
    Forger(FsAttacker& attacker, const OwnFile& own) : attacker_(attacker), own_(own) {}

    void operator()(auto&... fields) { (forge(fields), ...); }

private:
    template <class Field>
    void forge(Field& field) {
        constexpr std::array<std::uint64_t, 16> kEdges{
            0,           1,          2,          6,          4095,        4096,        65535,
            65536,       0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 47U, 1ULL << 48U, (1ULL << 63U) - 1,
            1ULL << 63U, ~0ULL};
        if constexpr (std::is_same_v<Field, bool>) {
            field = attacker_.below(2) == 0;
        } else if constexpr (std::is_same_v<Field, std::string_view>) {
            static const std::array<std::string, 9> names{
                "",         ".",     "..", "a/b", std::string(255, 'n'), std::string(256, 'n'), std::string(4000, '/'),
                {"\0x", 2}, "forger"};
            field = names[attacker_.below(names.size())];
        } else if constexpr (std::is_same_v<Field, fs::FileId>) {
            const fs::FileId& victim = attacker_.options.victim;
            const std::array ids{kRoot,
                                 own_.id,
                                 own_.id,
                                 victim,
                                 fs::FileId{victim.place, ~victim.random},
                                 fs::FileId{~std::uint64_t{0}, victim.random},
                                 fs::FileId{attacker_.chance(), attacker_.chance()}};
            field = ids[attacker_.below(ids.size())];
        } else if (attacker_.below(2) == 0) {
            const std::uint64_t number = kEdges[attacker_.below(kEdges.size())] - attacker_.below(2);
            field = static_cast<Field>(number);
        } else if (sizeof(field) == sizeof(std::uint64_t) && attacker_.below(4) == 0) {
            field = static_cast<Field>(own_.grant.proof ^ (attacker_.below(2) << attacker_.below(64)));
        } else if (sizeof(field) == sizeof(std::uint32_t)) {
            field = static_cast<Field>(kRights >> attacker_.below(3));
        }
    }

    FsAttacker& attacker_;
    const OwnFile& own_;
};

template <std::size_t... Place>
fs::Request request_of(std::size_t place, std::index_sequence<Place...>) {
    fs::Request request;
    ((place == Place ? void(request.emplace<Place>()) : void()), ...);
    return request;
}

// Returns true if success of the request would show or change data that is not the attacker's.
bool must_fail(const fs::Request& request, const OwnFile& own, const fs::FileId& victim) {
    return std::visit(
        [&](const auto& of) {
            using Of = std::remove_cvref_t<decltype(of)>;
            constexpr bool kIsData = std::is_same_v<Of, fs::ReadRequest> || std::is_same_v<Of, fs::WriteRequest> ||
                                     std::is_same_v<Of, fs::ExtendRequest> || std::is_same_v<Of, fs::ReserveRequest>;
            if constexpr (kIsData) {
                return of.file != own.id || of.grant != own.grant;
            } else if constexpr (std::is_same_v<Of, fs::SetAttributesRequest>) {
                return of.file == victim && of.what != 0;
            } else if constexpr (std::is_same_v<Of, fs::OpenRequest>) {
                return of.file == victim && (of.rights & kRights) != 0;
            } else {
                return std::is_same_v<Of, fs::CensusRequest> || std::is_same_v<Of, fs::ScrubRequest>;
            }
        },
        request);
}

// Well-formed requests with invalid ids, proofs, lengths, places and numbers; they are replayed and sent in any order.
void forge(FsAttacker& attacker) {
    constexpr std::size_t kKinds = std::variant_size_v<fs::Request>;
    while (!attacker.is_over()) {
        FsGuest guest(attacker);
        std::deque<Caller> callers;
        if (guest.meet()) {
            for (const std::uint16_t shard : guest.welcome().local) {
                if (auto caller = caller_of(guest, shard)) {
                    callers.push_back(std::move(*caller));
                }
            }
        }
        if (callers.empty()) {
            continue;
        }
        const OwnFile own = open_own(attacker, callers, "forger-" + std::to_string(::getuid()));
        Forger forger(attacker, own);
        for (int i = 0; i != 5000 && !attacker.is_over() && !guest.has_news(); ++i) {
            Caller& caller = callers[attacker.below(callers.size())];
            fs::Request request = request_of(attacker.below(kKinds), std::make_index_sequence<kKinds>());
            std::visit([&](auto& of) { std::remove_cvref_t<decltype(of)>::fields(forger, of); }, request);
            const bool fails = must_fail(request, own, attacker.options.victim);
            const fs::RequestHead head{
                .shard = attacker.below(8) == 0 ? static_cast<std::uint16_t>(attacker.chance()) : caller.shard,
                .sequence = static_cast<std::uint32_t>(attacker.below(3)),
                .table = static_cast<std::uint32_t>(attacker.below(3))};
            while (!caller.ask(attacker, request, head, fails) && !attacker.is_over()) {
                caller.end.wait(milliseconds(1));
                caller.collect(attacker, [](std::span<const std::uint8_t>) {});
            }
        }
    }
}

// Writes as much data as all channels take, to one file.
void be_greedy(FsAttacker& attacker) {
    FsGuest guest(attacker);
    std::deque<Caller> callers;
    if (!guest.meet()) {
        return;
    }
    for (const std::uint16_t shard : guest.welcome().local) {
        for (int i = 0; i != 16; ++i) {
            if (auto caller = caller_of(guest, shard)) {
                callers.push_back(std::move(*caller));
            }
        }
    }
    const OwnFile own = open_own(attacker, callers, "greedy-" + std::to_string(::getpid()));
    const std::uint32_t bytes = std::min(guest.welcome().chunk_bytes, guest.welcome().shape.data_bytes);
    while (!attacker.is_over() && !guest.has_news()) {
        for (Caller& caller : callers) {
            const std::uint64_t chunk = attacker.below(32);
            while (caller.ask(attacker,
                              fs::WriteRequest{own.id, own.grant, chunk * guest.welcome().chunk_bytes, 0, bytes, 0})) {
            }
            caller.collect(attacker, [](std::span<const std::uint8_t>) {});
        }
        callers[attacker.below(callers.size())].end.wait(milliseconds(1));
    }
}

// Cuts files of the greatest length that have no data: there are billions of chunks to look for.
void be_sparse(FsAttacker& attacker) {
    FsGuest guest(attacker);
    std::deque<Caller> callers;
    if (!guest.meet()) {
        return;
    }
    for (const std::uint16_t shard : guest.welcome().local) {
        if (auto caller = caller_of(guest, shard)) {
            callers.push_back(std::move(*caller));
        }
    }
    const std::uint64_t longest = std::uint64_t{guest.welcome().chunk_bytes} << 32U;
    for (int number = 0; !attacker.is_over() && !guest.has_news(); ++number) {
        const std::string name = "sparse-" + std::to_string(::getpid()) + "-" + std::to_string(number);
        const OwnFile own = open_own(attacker, callers, name);
        const fs::Request longer = fs::SetAttributesRequest{own.id, own.grant, fs::kSetSize, 0, 0, 0, longest};
        const fs::Request shorter = fs::SetAttributesRequest{own.id, own.grant, fs::kSetSize, 0, 0, 0, 1};
        for (Caller& caller : callers) {
            for (const fs::Request& request : {longer, shorter, fs::Request(fs::CloseRequest{own.id}),
                                               fs::Request(fs::RemoveRequest{kRoot, false, name})}) {
                while (!caller.ask(attacker, request) && !attacker.is_over()) {
                    caller.end.wait(milliseconds(1));
                    caller.collect(attacker, [](std::span<const std::uint8_t>) {});
                }
            }
        }
    }
}

constexpr std::array kOnShards{
    FsAttack{"forge", forge, "requests with ids, proofs, lengths and places that are none"},
    FsAttack{"greedy", be_greedy, "as much data as all channels take"},
    FsAttack{"sparse", be_sparse, "files as long as can be are cut and removed"},
};

}  // namespace

std::span<const FsAttack> attacks_on_shards() {
    return kOnShards;
}

}  // namespace cairn::hostile
