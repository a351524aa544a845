#include "tests/eal/both_client.hpp"

#include <algorithm>
#include <cstring>
#include <variant>

namespace cairn::both {

namespace {

constexpr std::uint64_t kLeast = 1000;        // calls, and rounds of a WRITE and a READ
constexpr std::uint64_t kLongestCall = 3000;  // bytes, in up to three packets
constexpr std::uint32_t kHalf = sizeof(Tenants::memory) / 2;
constexpr std::uint64_t kWriteId = 1;
constexpr std::uint64_t kReadId = 2;
constexpr Duration kPatience = seconds(60);

// Fills a message with contents of its own.
void fill(std::span<std::uint8_t> bytes, std::uint64_t message) noexcept {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(message * 131 + i * 7 + (i >> 8U));
    }
}

}  // namespace

Client::Client(std::unique_ptr<port::Port> port, std::shared_ptr<connections::Agent> agent, std::uint16_t number,
               std::uint64_t seed)
    : Side(std::move(port), std::move(agent), number, seed) {
    for (OneCall& each : under_way_) {
        each.client = this;
    }
}

Status Client::begin(const net::IpAddress& server, std::uint16_t service, Instant now) {
    server_ = server;
    give_up_at_ = now + kPatience;
    const Status asked = tenants().directory->ask(server, service, now);
    if (!asked.ok()) {
        return asked;
    }
    verbs::ConnectTo to;
    to.remote = server;
    to.port = service;
    const auto connection = tenants().connector->connect(*tenants().qp, to, now);
    if (!connection.ok()) {
        return connection.error();
    }
    connection_ = connection.value();
    return Nothing{};
}

bool Client::step(Instant now) noexcept {
    require(is_over() || now < give_up_at_, "calls and rounds take too long");
    const bool found = hear_directory(now);
    const bool heard = hear_connector();
    const bool completed = take_completions();
    if (session_ && offer_ && !leaving_ && !is_over()) {
        work(now);
    }
    if (disconnected_ && tenants().endpoint->sessions_open() == 0) {
        end();
    }
    return found || heard || completed;
}

bool Client::hear_directory(Instant now) {
    const std::optional<erpc::ServiceAnswer> answer = tenants().directory->poll_answer();
    if (!answer) {
        return false;
    }
    require(answer->outcome == erpc::ServiceAnswer::Outcome::Found, erpc::text_of(answer->outcome));
    if (!is_over()) {
        const roce::UdAddress peer{tenants().home->own_path(server_, now), answer->offer.qpn, answer->offer.qkey};
        const auto session = tenants().endpoint->connect(peer, now);
        require(session.ok(), "there is no session");
        session_ = session.ok() ? std::optional(session.value()) : std::nullopt;
    }
    return true;
}

bool Client::hear_connector() {
    bool heard = false;
    while (const std::optional<cm::Event> event = tenants().connector->poll_event()) {
        if (const auto* up = std::get_if<cm::Established>(&*event)) {
            std::memcpy(&offer_.emplace(), up->private_data.view().data(), sizeof(RawOffer));
        } else {
            disconnected_ = disconnected_ || std::holds_alternative<cm::Disconnected>(*event);
            require(leaving_, "the connection was not made, or it fell apart");
        }
        heard = true;
    }
    return heard;
}

bool Client::take_completions() {
    std::array<verbs::Completion, 4> done;
    const std::size_t count = tenants().completions->poll(done);
    for (const verbs::Completion& each : std::span(done).first(count)) {
        require(is_over() || each.status == verbs::CompletionStatus::Success, "a WRITE or a READ failed");
        if (each.wr_id == kReadId) {
            finish_round();
        }
    }
    return count != 0;
}

// Makes calls and rounds side by side until there are enough of both.
void Client::work(Instant now) {
    const bool more = calls_ < kLeast || rounds_ < kLeast;
    bool idle = !round_posted_;
    for (OneCall& each : under_way_) {
        if (more && !each.posted) {
            post_call(each, now);
        }
        idle = idle && !each.posted;
    }
    if (more && !round_posted_) {
        post_round();
    } else if (!more && idle) {
        leave(now);
    }
}

void Client::leave(Instant now) {
    leaving_ = true;
    tenants().endpoint->disconnect(*session_, now);
    require(tenants().connector->disconnect(connection_, {}, now).ok(), "disconnect() refuses");
}

void Client::post_call(OneCall& each, Instant now) {
    each.request.resize(1 + next_call_ * 977 % kLongestCall);
    fill(each.request, next_call_++);
    erpc::Call call;
    call.type = connections::kEcho;
    call.request = each.request;
    call.context = &each;
    call.completion = [](void* context, const erpc::CallResult& result) {
        auto& ended = *static_cast<OneCall*>(context);
        ended.client->on_answer(ended, result);
    };
    each.posted = tenants().endpoint->post(*session_, call, now).verdict == erpc::PostVerdict::Posted;
    require(each.posted, "a call is refused");
}

void Client::on_answer(OneCall& each, const erpc::CallResult& result) {
    require(result.status == erpc::CallStatus::Ok, "a call failed");
    require(std::equal(result.response.begin(), result.response.end(), each.request.begin(), each.request.end()),
            "an answer differs from its request");
    each.posted = false;
    ++calls_;
}

// Posts a round. The READ brings the bytes that the WRITE before it left in the server's memory.
void Client::post_round() {
    round_bytes_ = 1 + static_cast<std::uint32_t>(rounds_ * 1009 % kHalf);
    fill(source(), rounds_);
    fill(landing(), rounds_ + 1);
    const verbs::Sge from = tenants().mr->sge(0, round_bytes_);
    const verbs::Sge into = tenants().mr->sge(kHalf, round_bytes_);
    verbs::SendRequest request;
    request.wr_id = kWriteId;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.sges = {&from, 1};
    request.remote_address = offer_->address.get();
    request.rkey = Rkey{offer_->rkey.get()};
    const bool written = tenants().qp->post_send(request) == verbs::PostVerdict::Posted;
    request.wr_id = kReadId;
    request.opcode = verbs::WorkOpcode::RdmaRead;
    request.sges = {&into, 1};
    round_posted_ = written && tenants().qp->post_send(request) == verbs::PostVerdict::Posted;
    require(round_posted_, "a WRITE or a READ is refused");
}

void Client::finish_round() {
    require(std::equal(source().begin(), source().end(), landing().begin()),
            "a READ brings other bytes than were written");
    round_posted_ = false;
    ++rounds_;
}

std::span<std::uint8_t> Client::source() noexcept {
    return std::span(tenants().memory).first(round_bytes_);
}

std::span<std::uint8_t> Client::landing() noexcept {
    return std::span(tenants().memory).subspan(kHalf, round_bytes_);
}

}  // namespace cairn::both
