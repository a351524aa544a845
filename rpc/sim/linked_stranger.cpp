#include "rpc/sim/linked_stranger.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

namespace cairn::sim {

namespace {

constexpr std::uint32_t kSlots = 32;
constexpr std::uint32_t kQueueSlots = 1024;  // more than all requests of all contacts
constexpr std::uint32_t kBacklog = 4;
constexpr verbs::Rights kOpen = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;

}  // namespace

LinkedStranger::LinkedStranger(World& world, Node& node, connections::Home& home, std::uint32_t path_mtu_bytes,
                               std::size_t bytes)
    : world_(world),
      random_(world.random()),
      node_(node),
      path_mtu_bytes_(path_mtu_bytes),
      device_(node.worker()),
      pd_(device_.create_pd()),
      memory_(bytes),
      region_(device_.register_memory(*pd_, memory_.span(), kOpen | verbs::Right::LocalWrite).value()),
      queue_(device_.create_cq(kQueueSlots).value()),
      connector_(std::make_unique<verbs::Connector>(device_, home)) {
    std::memset(memory_.span().data(), 0, memory_.span().size());
    if (node.number() == 0) {
        const bool listening = connector_->listen(kPort, kBacklog).ok();
        CAIRN_ASSERT(listening);
    }
}

LinkedStranger::~LinkedStranger() = default;

LinkedStranger::Contact* LinkedStranger::add_contact() {
    if (contacts_.size() == kContactsMost) {
        return nullptr;
    }
    verbs::QpCapacity capacity;
    capacity.send_slots = kSlots;
    capacity.receive_slots = kSlots;
    auto qp = device_.create_qp(*pd_, capacity, {*queue_, *queue_});
    if (!qp.ok()) {
        return nullptr;
    }
    auto contact = std::make_unique<Contact>();
    contact->qp = std::move(qp).value();
    contact->manner = static_cast<Manner>(random_.below(static_cast<std::uint64_t>(Manner::Count)));
    const auto has = [this](std::uint32_t number) {
        return std::any_of(contacts_.begin(), contacts_.end(),
                           [number](const auto& each) { return each->number == number; });
    };
    while (has(contact->number)) {
        ++contact->number;
    }
    return contacts_.emplace_back(std::move(contact)).get();
}

LinkedStranger::Contact* LinkedStranger::find(verbs::ConnectionId id) {
    const auto found =
        std::find_if(contacts_.begin(), contacts_.end(), [id](const auto& each) { return each->id == id; });
    return found == contacts_.end() ? nullptr : found->get();
}

void LinkedStranger::act(std::size_t host, std::uint16_t port) {
    if (random_.chance(kMillion / 4)) {
        connect(host, port);
    }
    for (const auto& contact : contacts_) {
        if (contact->up && contact->manner != Manner::Silent && random_.chance(kMillion / 2)) {
            speak(*contact);
        }
    }
    if (!contacts_.empty() && random_.chance(kMillion / 20)) {
        end(contacts_[random_.below(contacts_.size())]->id);
    }
}

// Ends a connection, in an orderly way or not.
void LinkedStranger::end(verbs::ConnectionId id) {
    if (random_.chance(kMillion / 2)) {
        (void)connector_->disconnect(id, {}, node_.now());
    } else {
        connector_->abandon(id, node_.now());
        remove(id);
    }
}

void LinkedStranger::connect(std::size_t host, std::uint16_t port) {
    Contact* const contact = add_contact();
    if (contact == nullptr) {
        return;
    }
    contact->asked = true;
    const std::span<const std::uint8_t> greeted = greeting(*contact);
    std::vector<std::uint8_t> bytes(greeted.begin(), greeted.end());
    if (random_.chance(kMillion / 8)) {
        bytes[random_.below(bytes.size())] ^= static_cast<std::uint8_t>(random_.between(1, 255));
    }
    verbs::ConnectTo to;
    to.remote = world_.network().address_of(host);
    to.port = port;
    to.path_mtu_bytes = path_mtu_bytes_;
    to.choice.access = kOpen;
    to.choice.private_data = bytes;
    if (const auto asked = connector_->connect(*contact->qp, to, node_.now()); asked.ok()) {
        contact->id = asked.value();
    } else {
        contacts_.pop_back();
    }
}

// Accepts a request, refuses it, or does not answer it.
void LinkedStranger::on_requested(const cm::Requested& requested) {
    const std::uint64_t choice = random_.below(4);
    if (choice == 0) {
        (void)connector_->reject(requested.id, {}, node_.now());
    }
    Contact* const contact = choice >= 2 ? add_contact() : nullptr;
    if (contact == nullptr) {
        return;
    }
    contact->id = requested.id;
    contact->said = requested.private_data;
    verbs::ConnectionChoice how;
    how.access = kOpen;
    how.private_data = greeting(*contact);
    if (!connector_->accept(requested.id, *contact->qp, how, node_.now()).ok()) {
        contacts_.pop_back();
    }
}

void LinkedStranger::look() {
    while (const std::optional<cm::Event> event = connector_->poll_event()) {
        if (const auto* const requested = std::get_if<cm::Requested>(&*event)) {
            on_requested(*requested);
        } else if (const auto* const up = std::get_if<cm::Established>(&*event)) {
            ++connected_;
            if (Contact* const contact = find(up->id); contact != nullptr) {
                contact->up = true;
                contact->said = contact->asked ? up->private_data : contact->said;
                on_up(*contact);
            }
        } else if (const auto* const leaving = std::get_if<cm::DisconnectRequested>(&*event)) {
            end(leaving->id);
        } else if (const auto* const released = std::get_if<cm::Released>(&*event)) {
            remove(released->id);
        }
    }
    std::array<verbs::Completion, 32> done;
    while (queue_->poll(done) != 0) {  // the results of its writes do not matter
    }
}

void LinkedStranger::leave() {
    for (const auto& contact : contacts_) {
        connector_->abandon(contact->id, node_.now());
    }
    contacts_.clear();
}

void LinkedStranger::remove(verbs::ConnectionId id) {
    std::erase_if(contacts_, [id](const auto& each) { return each->id == id; });
}

void LinkedStranger::scramble(std::span<std::uint8_t> bytes) {
    for (std::uint8_t& octet : bytes) {
        octet = static_cast<std::uint8_t>(random_.next());
    }
}

void LinkedStranger::spoil(const Contact& contact, std::span<std::uint8_t> bytes) {
    if (contact.manner == Manner::Mutates && random_.chance(kMillion / 4)) {
        bytes[random_.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << random_.below(8));
    } else if (contact.manner == Manner::Babbles) {
        scramble(bytes.subspan(random_.below(bytes.size())));
    }
}

void LinkedStranger::post(Contact& contact, const verbs::SendRequest& request) {
    writes_ += contact.qp->post_send(request) == verbs::PostVerdict::Posted ? 1U : 0U;
}

}  // namespace cairn::sim
