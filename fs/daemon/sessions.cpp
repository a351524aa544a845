#include "fs/daemon/sessions.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>
#include <utility>

#include "fs/daemon/session.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kStrangers = 16;                 // connections that have not sent a Hello
constexpr int kUnread = 64;                            // packets that are read and dropped before a refusal
constexpr Duration kNoDescriptor = milliseconds(100);  // time until the next try

Instant steady_now() noexcept {
    return {std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

// Places of the fixed descriptors among those that are polled.
enum Polled : std::size_t { kStop, kListening, kNews, kFixed };

}  // namespace

Sessions::Sessions(int listening_fd, NewsBox& news, std::vector<ShardDoor*> doors, const SessionConfig& config)
    : listening_fd_(listening_fd),
      news_(news),
      doors_(std::move(doors)),
      config_(config),
      numbers_(config.key),
      crowd_(config.max_clients, config.max_user_clients, config.own_user),
      room_(kMostHelloBytes) {
    CAIRN_ASSERT(!doors_.empty() && doors_.size() == config_.welcome.local.size() && config_.say != nullptr);
}

Sessions::~Sessions() = default;

bool Sessions::serve(int stop_fd, Duration span) {
    const Instant until = steady_now() + span;
    for (Instant now = steady_now(); now < until; now = steady_now()) {
        sleep(stop_fd, until);
        news_.take([this](ShardNews& news) { on_news(news); });
        if (polled_[kStop].revents != 0) {
            return false;
        }
        // Done before others are accepted, while the places are those of the polled sessions.
        for (std::size_t i = kFixed; i != polled_.size(); ++i) {
            Session& session = *sessions_[i - kFixed];
            if (polled_[i].revents != 0 && !session.has_ended) {
                look_at(session);
            } else if (session.client == 0 && steady_now() >= session.hello_by && !session.has_ended) {
                refuse(session, SessionCounter::Silent, {"nothing was said in time", "say Hello first"});
            }
        }
        if (polled_[kListening].revents != 0) {
            accept_all();
        }
        std::erase_if(sessions_, [](const auto& each) { return each->has_ended; });
    }
    return true;
}

// Fills polled_, and sleeps until a descriptor is readable or something is due.
void Sessions::sleep(int stop_fd, Instant until) {
    const Instant now = steady_now();
    polled_.assign({{stop_fd, POLLIN, 0}, {now < accept_at_ ? -1 : listening_fd_, POLLIN, 0}, {news_.fd(), POLLIN, 0}});
    until = now < accept_at_ ? std::min(until, accept_at_) : until;
    for (const auto& each : sessions_) {
        polled_.push_back({each->socket.get(), static_cast<short>(each->awaits_channel ? 0 : POLLIN), 0});
        until = each->client == 0 ? std::min(until, each->hello_by) : until;
    }
    const std::int64_t ns = news_.begin_sleep() && until > now ? (until - now).ns : 0;
    const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
    if (::ppoll(polled_.data(), polled_.size(), &timeout, nullptr) < 0) {
        std::ranges::for_each(polled_, [](pollfd& each) { each.revents = 0; });  // after a signal
    }
    news_.end_sleep();
}

void Sessions::accept_all() {
    for (std::size_t i = 0; i != kStrangers; ++i) {
        OwnedFd socket(::accept4(listening_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket.is_open()) {
            if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
                accept_at_ = steady_now() + kNoDescriptor;
            }
            return;
        }
        std::shared_ptr<const Person> person = person_at(socket.get());
        if (person == nullptr) {
            continue;
        }
        make_room_for_stranger();
        sessions_.push_back(
            std::make_unique<Session>(Session{std::move(socket), std::move(person), steady_now() + config_.patience}));
    }
}

// Drops a connection without a Hello if there are too many. A silent user cannot keep other users out.
void Sessions::make_room_for_stranger() {
    std::vector<Session*> strangers;
    std::vector<std::uint32_t> users;
    for (const auto& each : sessions_) {
        if (each->client == 0 && !each->has_ended) {
            strangers.push_back(each.get());
            users.push_back(each->person->uid);
        }
    }
    if (strangers.size() >= kStrangers) {
        refuse(*strangers[place_to_give_up(users)], SessionCounter::Crowded,
               {"too many have not said who they are", "try again"});
    }
}

// Reads one packet of a session, so that no session keeps the others waiting.
void Sessions::look_at(Session& session) {
    if (session.awaits_channel) {  // a polled session that awaits a channel has hung up
        hang_up(session);
        return;
    }
    const Reception received = receive_packet(session.socket.get(), room_);
    switch (received.what) {
        case Received::Nothing:
            break;
        case Received::End:
            hang_up(session);
            break;
        case Received::TooLong:
            refuse(session, SessionCounter::Nonsense, {"a message is too long", kOneVersion});
            break;
        case Received::Packet:
            if (session.client == 0) {
                on_hello(session, received.bytes);
            } else {
                on_request(session, received.bytes);
            }
            break;
    }
}

void Sessions::on_hello(Session& session, std::span<const std::uint8_t> bytes) {
    if (parse_counters_request(bytes) && config_.counters_text) {
        (void)send_packet(session.socket.get(), bytes_of(CountersAnswer{config_.counters_text()}));
        return hang_up(session);
    }
    const std::optional<Hello> hello = parse_hello(bytes);
    if (!hello) {
        refuse(session, SessionCounter::Nonsense, {"this is no Hello of this version", kOneVersion});
        return;
    }
    // A client that lost its connection comes back at once. Under another number it would have no rights to its files.
    if (numbers_.is_of(session.person->uid, hello->client) && leavers_.contains(hello->client)) {
        refuse(session, SessionCounter::Early, {"the client's former connection has not ended yet", "try again"});
        return;
    }
    if (!judge_room(session)) {
        return;
    }
    config_.welcome.client = number_for(*session.person, hello->client);
    if (!send_packet(session.socket.get(), bytes_of(config_.welcome))) {
        counters_.count(SessionCounter::Deaf);
        hang_up(session);
        return;
    }
    session.client = config_.welcome.client;
    crowd_.add(session.person->uid);
    session.channels.resize(doors_.size());
    counters_.count(SessionCounter::Welcomed);
    counters_.count(SessionCounter::Returned, session.client == hello->client ? 1 : 0);
}

// Returns true if there is room for one more client of this user. Otherwise refuses the session.
bool Sessions::judge_room(Session& session) {
    const std::uint32_t user = session.person->uid;
    const Crowd::Verdict verdict = crowd_.judge(user);
    if (verdict == Crowd::Verdict::Full) {
        refuse(session, SessionCounter::Full,
               {fmt::format("the daemon has {} clients", clients()),
                "end one of them, or start it with a larger --max-clients"});
    } else if (verdict == Crowd::Verdict::HasShare) {
        refuse(session, SessionCounter::Share,
               {fmt::format("user {} has {} of the daemon's clients, its share", user, crowd_.count_of(user)),
                "end one of them, or start the daemon with a larger --max-user-clients"});
    }
    return verdict == Crowd::Verdict::Welcome;
}

// Returns the wanted number if this user got it and no client has it now. Otherwise returns a new number.
std::uint64_t Sessions::number_for(const Person& person, std::uint64_t wanted) {
    const auto is_taken = [this](std::uint64_t number) {
        return session_of(number) != nullptr || leavers_.contains(number);
    };
    if (numbers_.is_of(person.uid, wanted) && node_of_client(wanted, config_.nodes) == config_.node &&
        !is_taken(wanted)) {
        return wanted;
    }
    std::random_device chance;
    std::uint64_t number = 0;
    while (number == 0 || is_taken(number)) {
        number = numbers_.make(person.uid, chance_of_node(chance(), config_.node, config_.nodes));
    }
    return number;
}

void Sessions::on_news(ShardNews& news) {
    switch (news.what) {
        case ShardNews::What::ChannelMade:
        case ShardNews::What::ChannelFailed:
            on_channel(news);
            break;
        case ShardNews::What::Breach:
            if (Session* const session = session_of(news.client); session != nullptr) {
                say(fmt::format("process {} of user {} broke its channel to shard {}, and is hung up on",
                                session->person->pid, session->person->uid, news.shard));
                refuse(*session, SessionCounter::Breach,
                       {"the channel has what no client writes", "report it: memory was overwritten"});
            }
            break;
        case ShardNews::What::Drained:
        case ShardNews::What::Forgotten:
            on_leaver(news);
            break;
    }
}

// All shards must have drained before one forgets the client. A call to one of them may have opened a file at another.
void Sessions::on_leaver(const ShardNews& news) {
    const auto found = leavers_.find(news.client);
    CAIRN_ASSERT(found != leavers_.end() && found->second.awaited != 0);
    Leaver& leaver = found->second;
    if (--leaver.awaited != 0) {
        return;
    }
    if (leaver.is_drained) {
        crowd_.remove(leaver.user);
        leavers_.erase(found);
        counters_.count(SessionCounter::Left);
        return;
    }
    leaver.is_drained = true;
    leaver.awaited = doors_.size();
    for (ShardDoor* const door : doors_) {
        door->forget(news.client);
    }
}

// Reads and drops packets first. With unread packets the kernel would report a reset, and the client could not read the
// refusal.
void Sessions::refuse(Session& session, SessionCounter reason, const Error& why) {
    int unread = 0;
    for (Received what = Received::Packet; what != Received::Nothing && what != Received::End && unread != kUnread;
         ++unread) {
        what = receive_packet(session.socket.get(), room_).what;
    }
    (void)send_packet(session.socket.get(), bytes_of(Refusal{why.text()}));
    counters_.count(SessionCounter::Refused);
    counters_.count(reason);
    hang_up(session);
}

// Limits the rate of lines: a client can cause them as often as it likes.
void Sessions::say(const std::string& line) {
    const Instant now = steady_now();
    if (now < say_at_) {
        ++unsaid_;
        return;
    }
    say_at_ = now + config_.say_every;
    const std::uint64_t unsaid = std::exchange(unsaid_, 0);
    config_.say(unsaid == 0 ? line : fmt::format("{}; so were {} more before", line, unsaid));
}

void Sessions::hang_up(Session& session) {
    session.has_ended = true;
    session.socket = OwnedFd();
    if (session.client != 0) {
        leavers_.emplace(session.client, Leaver{session.person->uid, false, doors_.size()});
        for (ShardDoor* const door : doors_) {
            door->drain(session.client);
        }
    }
}

Sessions::Session* Sessions::session_of(std::uint64_t client) noexcept {
    const auto found = std::ranges::find_if(
        sessions_, [client](const auto& each) { return each->client == client && !each->has_ended; });
    return client != 0 && found != sessions_.end() ? found->get() : nullptr;
}

}  // namespace cairn::fs
