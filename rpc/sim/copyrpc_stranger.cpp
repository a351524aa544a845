#include "rpc/sim/copyrpc_stranger.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

namespace cairn::sim {

namespace {

constexpr std::size_t kContactsMost = 3;
constexpr std::uint32_t kReceives = 32;
constexpr std::uint32_t kQueueSlots = 1024;  // more than all requests of all contacts
constexpr std::uint32_t kBacklog = 4;
constexpr std::uint32_t kFewBlocks = 4;
constexpr verbs::Rights kWritten{verbs::Right::RemoteWrite};

using copyrpc::kBlockBytes;

}  // namespace

CopyrpcStranger::CopyrpcStranger(World& world, Node& node, connections::Home& home, bool listens,
                                 std::uint32_t path_mtu_bytes)
    : world_(world),
      random_(world.random()),
      node_(node),
      path_mtu_bytes_(path_mtu_bytes),
      device_(node.worker()),
      pd_(device_.create_pd()),
      memory_(std::size_t{kBytes} * 2),
      region_(device_.register_memory(*pd_, memory_.span(), kWritten | verbs::Right::LocalWrite).value()),
      queue_(device_.create_cq(kQueueSlots).value()),
      connector_(std::make_unique<verbs::Connector>(device_, home)) {
    std::memset(memory_.span().data(), 0, memory_.span().size());
    if (listens) {
        const bool listening = connector_->listen(kPort, kBacklog).ok();
        CAIRN_ASSERT(listening);
    }
}

CopyrpcStranger::~CopyrpcStranger() = default;

CopyrpcStranger::Contact* CopyrpcStranger::add_contact() {
    if (contacts_.size() == kContactsMost) {
        return nullptr;
    }
    verbs::QpCapacity capacity;
    capacity.send_slots = kReceives;
    capacity.receive_slots = kReceives;
    auto qp = device_.create_qp(*pd_, capacity, {*queue_, *queue_});
    if (!qp.ok()) {
        return nullptr;
    }
    auto contact = std::make_unique<Contact>();
    contact->qp = std::move(qp).value();
    contact->manner = static_cast<Manner>(random_.below(static_cast<std::uint64_t>(Manner::Count)));
    return contacts_.emplace_back(std::move(contact)).get();
}

CopyrpcStranger::Contact* CopyrpcStranger::find(verbs::ConnectionId id) {
    const auto found =
        std::find_if(contacts_.begin(), contacts_.end(), [id](const auto& each) { return each->id == id; });
    return found == contacts_.end() ? nullptr : found->get();
}

void CopyrpcStranger::act(std::size_t host, std::uint16_t port) {
    if (random_.chance(kMillion / 4)) {
        connect(host, port);
    }
    for (const auto& contact : contacts_) {
        if (contact->up && contact->peer && random_.chance(kMillion / 2)) {
            write(*contact);
        }
    }
    if (!contacts_.empty() && random_.chance(kMillion / 20)) {
        const verbs::ConnectionId id = contacts_[random_.below(contacts_.size())]->id;
        if (random_.chance(kMillion / 2)) {
            (void)connector_->disconnect(id, {}, node_.now());
        } else {
            connector_->abandon(id, node_.now());
            remove(id);
        }
    }
}

void CopyrpcStranger::connect(std::size_t host, std::uint16_t port) {
    Contact* const contact = add_contact();
    if (contact == nullptr) {
        return;
    }
    copyrpc::RawHello hello;
    copyrpc::Hello{4096U << random_.below(5), static_cast<std::uint16_t>(random_.between(4, 64)), region_->address(),
                   region_->rkey()}
        .emit(hello);
    std::array<std::uint8_t, sizeof(hello)> bytes{};
    std::memcpy(bytes.data(), &hello, sizeof(hello));
    if (random_.chance(kMillion / 8)) {
        bytes[random_.below(bytes.size())] ^= static_cast<std::uint8_t>(random_.between(1, 255));
    }
    verbs::ConnectTo to;
    to.remote = world_.network().address_of(host);
    to.port = port;
    to.path_mtu_bytes = path_mtu_bytes_;
    to.choice.access = kWritten;
    to.choice.private_data = bytes;
    if (const auto asked = connector_->connect(*contact->qp, to, node_.now()); asked.ok()) {
        contact->id = asked.value();
    } else {
        contacts_.pop_back();
    }
}

// Accepts, refuses, or leaves the peer without an answer.
void CopyrpcStranger::on_requested(const cm::Requested& requested) {
    const std::uint64_t choice = random_.below(4);
    if (choice == 0) {
        (void)connector_->reject(requested.id, {}, node_.now());
    }
    Contact* const contact = choice >= 2 ? add_contact() : nullptr;
    if (contact == nullptr) {
        return;
    }
    copyrpc::RawHello hello;
    copyrpc::Hello{4096, 16, region_->address(), region_->rkey()}.emit(hello);
    contact->id = requested.id;
    contact->peer = copyrpc::Hello::parse(std::span(requested.private_data.octets).first(requested.private_data.size));
    verbs::ConnectionChoice how;
    how.access = kWritten;
    how.private_data = {reinterpret_cast<const std::uint8_t*>(&hello), sizeof(hello)};
    if (!connector_->accept(requested.id, *contact->qp, how, node_.now()).ok()) {
        contacts_.pop_back();
    }
}

void CopyrpcStranger::look() {
    while (const std::optional<cm::Event> event = connector_->poll_event()) {
        if (const auto* const requested = std::get_if<cm::Requested>(&*event)) {
            on_requested(*requested);
        } else if (const auto* const up = std::get_if<cm::Established>(&*event)) {
            ++connected_;
            if (Contact* const contact = find(up->id); contact != nullptr) {
                contact->up = true;
                contact->peer =
                    contact->peer
                        ? contact->peer
                        : copyrpc::Hello::parse(std::span(up->private_data.octets).first(up->private_data.size));
                for (std::uint64_t i = random_.below(2) * kReceives; i > 0; --i) {  // or it is never ready
                    (void)contact->qp->post_receive(verbs::ReceiveRequest{});
                }
            }
        } else if (const auto* const leaving = std::get_if<cm::DisconnectRequested>(&*event)) {
            if (random_.chance(kMillion / 2)) {
                (void)connector_->disconnect(leaving->id, {}, node_.now());
            } else {
                connector_->abandon(leaving->id, node_.now());
                remove(leaving->id);
            }
        } else if (const auto* const released = std::get_if<cm::Released>(&*event)) {
            remove(released->id);
        }
    }
    std::array<verbs::Completion, 32> done;
    while (queue_->poll(done) != 0) {  // whatever became of what it wrote
    }
}

void CopyrpcStranger::leave() {
    while (!contacts_.empty()) {
        const verbs::ConnectionId id = contacts_.back()->id;
        connector_->abandon(id, node_.now());
        remove(id);
    }
}

void CopyrpcStranger::remove(verbs::ConnectionId id) {
    std::erase_if(contacts_, [id](const auto& each) { return each->id == id; });
}

// A batch of requests, the next one of its connection. Returns its blocks.
std::uint32_t CopyrpcStranger::compose(Contact& contact) {
    const std::span<std::uint8_t> room = memory_.span().subspan(kBytes);
    std::fill(room.begin(), room.end(), std::uint8_t{0});
    const auto messages = static_cast<std::uint16_t>(random_.between(0, 3));
    copyrpc::RawBatchHeader raw;
    copyrpc::BatchHeader{contact.sequence++, messages, 0, 0, 0}.emit(raw);
    std::memcpy(room.data(), &raw, sizeof(raw));
    std::uint32_t blocks = 1;
    for (std::uint16_t i = 0; i < messages; ++i) {
        std::array<std::uint8_t, 40> payload{};
        copyrpc::Message request;
        request.call = static_cast<std::uint32_t>(random_.below(1U << 31U));
        request.charge = static_cast<std::uint16_t>(random_.between(2, kFewBlocks));
        request.type = static_cast<std::uint8_t>(random_.between(1, 7));
        request.payload = std::span(payload).first(random_.below(payload.size() + 1));
        if (random_.chance(kMillion / 4)) {
            request.extension = copyrpc::Extension{random_.next(), static_cast<std::uint32_t>(random_.next())};
        }
        std::for_each(payload.begin(), payload.end(),
                      [this](std::uint8_t& octet) { octet = static_cast<std::uint8_t>(random_.next()); });
        const std::span<std::uint8_t> body = request.emit(room.subspan(std::size_t{blocks} * kBlockBytes));
        std::copy(request.payload.begin(), request.payload.end(), body.begin());
        blocks += request.blocks();
    }
    return blocks;
}

void CopyrpcStranger::write(Contact& contact) {
    const std::uint32_t ring_blocks = contact.peer->ring_bytes / kBlockBytes;
    std::uint32_t blocks = compose(contact);
    const std::span<std::uint8_t> room = memory_.span().subspan(kBytes, std::size_t{blocks} * kBlockBytes);
    std::uint32_t immediate = blocks;
    if (contact.manner == Manner::Mutates && random_.chance(kMillion / 4)) {
        room[random_.below(room.size())] ^= static_cast<std::uint8_t>(1U << random_.below(8));
    } else if (contact.manner == Manner::Babbles) {
        std::for_each(room.begin() + static_cast<std::ptrdiff_t>(random_.below(room.size())), room.end(),
                      [this](std::uint8_t& octet) { octet = static_cast<std::uint8_t>(random_.next()); });
        immediate = random_.chance(kMillion / 2) ? blocks : static_cast<std::uint32_t>(random_.next());
    }
    if (contact.manner == Manner::Silent || contact.place + blocks > ring_blocks) {
        return;
    }
    const std::array<verbs::Sge, 1> pieces{region_->sge(kBytes, blocks * kBlockBytes)};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWriteWithImmediate;
    request.sges = pieces;
    request.immediate = immediate;
    request.remote_address = contact.peer->address + std::uint64_t{contact.place} * kBlockBytes;
    request.rkey = contact.peer->rkey;
    if (contact.qp->post_send(request) == verbs::PostVerdict::Posted) {
        contact.place += blocks;
        ++batches_;
    }
}

}  // namespace cairn::sim
