#include "rpc/copyrpc/transfers.hpp"

#include <array>
#include <utility>

#include "rpc/copyrpc/server.hpp"

namespace cairn::copyrpc {

namespace {

constexpr std::uint32_t kSharesOfPool = 4;  // a direction has one share
constexpr std::size_t kFetchesMost = 4;     // of one session, with memory

SessionTransfers& transfers_of(Session& session) {
    if (session.transfers == nullptr) {
        session.transfers = std::make_unique<SessionTransfers>();
    }
    return *session.transfers;
}

}  // namespace

bool has_share(const rpc::MsgPool& pool, std::uint64_t taken_bytes, std::uint64_t of_session,
               std::uint64_t bytes) noexcept {
    const std::uint64_t share = pool.capacity_bytes() / kSharesOfPool;
    return (taken_bytes == 0 || taken_bytes + bytes <= share) && (of_session == 0 || of_session + bytes <= share / 2);
}

bool Transfers::has_room(const SessionTransfers& own, std::uint64_t bytes) const noexcept {
    return has_share(pool_, taken_bytes_, own.taken_bytes, bytes);
}

void Transfers::fetch(Session& session, Fetch fetch) {
    transfers_of(session).fetches.push_back(std::move(fetch));
}

bool Transfers::puts_off(const Session& session) const noexcept {
    const SessionTransfers* const own = session.transfers.get();
    return own != nullptr && (!own->fetches.empty() || !has_room(*own, 1));
}

void Transfers::write(Session& session, Writing writing) {
    SessionTransfers& own = transfers_of(session);
    writing.bytes = writing.memory.bytes;
    taken_bytes_ += writing.memory.bytes;
    own.taken_bytes += writing.memory.bytes;
    own.writings.push_back(std::move(writing));
}

bool Transfers::give_key(Session& session, Transfer& transfer, verbs::Rights rights) noexcept {
    auto key = device_.register_memory(*session.pd, transfer.memory.span(), rights, 0);
    transfer.key = key.ok() ? std::move(key).value() : nullptr;
    return transfer.key != nullptr;
}

// Gives memory to a request. Returns false if there is none for it now.
bool Transfers::begin(Session& session, Fetch& fetch) noexcept {
    SessionTransfers& own = *session.transfers;
    if (!has_room(own, fetch.place.bytes)) {
        return false;
    }
    fetch.memory = pool_.allocate(fetch.place.bytes);
    if (!fetch.memory.valid() || !give_key(session, fetch, verbs::Right::LocalWrite)) {
        pool_.release(fetch.memory);
        return false;
    }
    fetch.bytes = fetch.memory.bytes;
    taken_bytes_ += fetch.memory.bytes;
    own.taken_bytes += fetch.memory.bytes;
    return true;
}

// Reads one request after the other. A request that waits for memory lets no later one pass.
bool Transfers::post_reads(Session& session) noexcept {
    SessionTransfers& own = *session.transfers;
    for (std::size_t i = 0; i < own.fetches.size() && i < kFetchesMost; ++i) {
        Fetch& fetch = own.fetches[i];
        if (fetch.place.bytes == 0) {
            return i != 0 || has_room(own, 1);
        }
        if (fetch.key == nullptr && !begin(session, fetch)) {
            wants_polling_ = true;
            return false;
        }
        while (!fetch.is_posted()) {
            if (own.reads == pieces_most_) {
                return true;  // the end of the next piece lets it go on
            }
            if (!fetch.post(*session.qp, verbs::WorkOpcode::RdmaRead, kReadWork)) {
                return false;
            }
            ++own.reads;
        }
    }
    return true;
}

// Ends the oldest request if its caller has given it up. Executes it if it only waited. Returns true if it did either.
bool Transfers::serve_oldest(Session& session, Instant now) noexcept {
    SessionTransfers* const own = session.transfers.get();
    if (own == nullptr || own->fetches.empty() || own->fetches.front().key != nullptr) {
        return false;
    }
    const rpc::JobRequest work = own->fetches.front().work;
    const bool waited = own->fetches.front().place.bytes == 0;
    if (now < work.deadline && !(waited && has_room(*own, 1))) {
        return false;
    }
    own->fetches.pop_front();
    if (now >= work.deadline) {
        (void)server_.expire(work.handle);
    } else {
        server_.execute(work, now);
    }
    return true;
}

// Writes pieces of answers. The message of an answer follows its last piece, so its caller then finds all of it.
bool Transfers::post_writes(Session& session) noexcept {
    SessionTransfers& own = *session.transfers;
    for (Writing& writing : own.writings) {
        if (writing.is_posted()) {
            continue;
        }
        if (writing.key == nullptr && !give_key(session, writing, verbs::Rights{})) {
            wants_polling_ = true;
            return false;
        }
        while (!writing.is_posted()) {
            if (own.writes == pieces_most_) {
                return true;
            }
            if (!writing.post(*session.qp, verbs::WorkOpcode::RdmaWrite, kWriteWork)) {
                return false;
            }
            ++own.writes;
        }
        Message answer;
        answer.answer = true;
        answer.call = writing.call;
        answer.written = writing.memory.bytes;
        server_.put(session, answer, writing.charge);
        ++statistics_.answers_written;
    }
    return true;
}

bool Transfers::serve(Session& session, Instant now) noexcept {
    while (serve_oldest(session, now)) {
    }
    if (session.transfers == nullptr) {
        return true;
    }
    const bool written = post_writes(session);
    return post_reads(session) && written;
}

void Transfers::on_read(Session& session, Instant now) noexcept {
    SessionTransfers& own = *session.transfers;
    --own.reads;
    own.under_way.on_done();
    Fetch& oldest = own.fetches.front();
    if (!oldest.advance()) {
        return;
    }
    Fetch done = std::move(oldest);
    own.fetches.pop_front();
    done.key.reset();
    ++statistics_.requests_fetched;
    server_.on_fetched(done, now);
}

void Transfers::on_written(Session& session) noexcept {
    SessionTransfers& own = *session.transfers;
    --own.writes;
    own.under_way.on_done();
    Writing& oldest = own.writings.front();
    if (oldest.advance()) {
        end(own, oldest);
        own.writings.pop_front();
    }
}

void Transfers::end(SessionTransfers& own, Transfer& transfer) noexcept {
    transfer.key.reset();
    taken_bytes_ -= transfer.memory.bytes;
    own.taken_bytes -= transfer.memory.bytes;
    pool_.release(transfer.memory);
}

void Transfers::release(Session& session, rpc::MsgBuffer& fetched) noexcept {
    if (fetched.valid()) {
        taken_bytes_ -= fetched.bytes;
        session.transfers->taken_bytes -= fetched.bytes;
        pool_.release(fetched);
    }
}

void Transfers::forget(Session& session) noexcept {
    if (session.transfers == nullptr) {
        return;
    }
    for (Fetch& fetch : session.transfers->fetches) {
        end(*session.transfers, fetch);
    }
    for (Writing& writing : session.transfers->writings) {
        end(*session.transfers, writing);
    }
    session.transfers.reset();
}

bool Transfers::is_stuck(Session& session) noexcept {
    SessionTransfers* const own = session.transfers.get();
    return own != nullptr && own->under_way.is_stuck(own->reads + own->writes);
}

}  // namespace cairn::copyrpc
