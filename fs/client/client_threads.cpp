#include "fs/client/client_threads.hpp"

#include <algorithm>
#include <atomic>

namespace cairn::fs {

namespace {

struct Membership {
    std::uint64_t number = 0;  // the client's
    ClientThread* thread = nullptr;
    std::weak_ptr<ClientThreads> of{};
};

// A thread's parts of all clients that it uses. The one that it used last comes first.
struct Memberships {
    ~Memberships() {
        for (const Membership& each : all) {
            if (const std::shared_ptr<ClientThreads> threads = each.of.lock()) {
                threads->give_back(*each.thread);
            }
        }
    }
    std::uint64_t last_number = 0;
    ClientThread* last = nullptr;
    std::vector<Membership> all{};
};

thread_local Memberships own_memberships;
std::atomic<std::uint64_t> clients_made{0};

}  // namespace

Result<std::shared_ptr<ClientThreads>> ClientThreads::connect(std::string socket, Duration timeout) {
    Result<std::unique_ptr<Connection>> connection = Connection::open(std::move(socket));
    if (!connection.ok()) {
        return connection.error();
    }
    std::shared_ptr<ClientThreads> threads(new ClientThreads);
    threads->common_.connection = std::move(connection).value();
    threads->common_.timeout = timeout;
    threads->number_ = ++clients_made;
    return threads;
}

ClientThread& ClientThreads::mine() {
    Memberships& own = own_memberships;
    if (own.last_number == number_) {
        return *own.last;
    }
    std::erase_if(own.all, [](const Membership& each) { return each.of.expired(); });
    const auto at = std::ranges::find(own.all, number_, &Membership::number);
    ClientThread& thread = at != own.all.end() ? *at->thread : take();
    if (at == own.all.end()) {
        own.all.push_back({number_, &thread, weak_from_this()});
    }
    own.last_number = number_;
    own.last = &thread;
    return thread;
}

ClientThread& ClientThreads::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        return *all_.emplace_back(std::make_unique<ClientThread>(common_));
    }
    ClientThread& thread = *free_.back();
    free_.pop_back();
    return thread;
}

void ClientThreads::give_back(ClientThread& thread) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&thread);
}

}  // namespace cairn::fs
