// A hostile host of a fuzzer, which makes connections to an RPC system's endpoint itself, and writes by hand.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "lib/verbs/connector.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::test {

class StrangerHost {
public:
    static constexpr std::size_t kBuffers = 128;
    static constexpr std::uint16_t kReceives = 16;  // receive requests of a contact for WRITEs with immediates

    struct Contact {
        std::unique_ptr<verbs::Qp> qp;
        verbs::ConnectionId id{};
        cm::PrivateBytes said{};           // the peer's private data
        std::deque<std::uint32_t> came{};  // immediates of the peer's WRITEs
        bool up = false;
    };

    // `bytes` of memory are the contacts'; the memory to write from lies after them.
    StrangerHost(const char* address, std::size_t contacts, std::size_t bytes)
        : port(address, kBuffers),
          worker_(worker::Worker::create(port, config(), Instant{}).value()),
          device_(*worker_),
          pd_(device_.create_pd()),
          memory_(bytes + kSlots * kSlotBytes),
          written_at_(bytes),
          region_(device_.register_memory(*pd_, memory_, kAll).value()),
          queue_(device_.create_cq(256).value()),
          home_(connections::Home::create(connections::Agent::create(), *worker_, {}).value()),
          contacts_(contacts),
          connector_(std::make_unique<verbs::Connector>(device_, *home_)) {}

    [[nodiscard]] std::vector<Contact>& contacts() { return contacts_; }
    [[nodiscard]] std::span<std::uint8_t> memory() { return memory_; }
    [[nodiscard]] const verbs::Mr& region() const { return *region_; }  // covers all of the memory
    // Makes a key for a part of the memory, whose addresses begin with 0.
    [[nodiscard]] std::unique_ptr<verbs::Mr> open(std::span<std::uint8_t> part) {
        return device_.register_memory(*pd_, part, kAll, 0).value();
    }
    // Connects, or does nothing if the contact has a connection.
    void connect(Contact& contact, const char* to_address, std::uint16_t to_port,
                 std::span<const std::uint8_t> greeting, Instant now) {
        if (contact.qp != nullptr) {
            return;
        }
        verbs::QpCapacity capacity;
        capacity.send_slots = 32;
        capacity.receive_slots = 32;
        auto made = device_.create_qp(*pd_, capacity, {*queue_, *queue_});
        if (!made.ok()) {
            return;
        }
        contact.qp = std::move(made).value();
        verbs::ConnectTo to;
        to.remote = net::IpAddress::parse(to_address).value();
        to.port = to_port;
        to.choice.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
        to.choice.private_data = greeting;
        const auto asked = connector_->connect(*contact.qp, to, now);
        if (asked.ok()) {
            contact.id = asked.value();
        } else {
            contact.qp.reset();
        }
    }
    // Ends the connection without notice to the peer, or in order if it is up.
    void end(Contact& contact, bool in_order, Instant now) {
        if (contact.qp == nullptr || (in_order && contact.up && connector_->disconnect(contact.id, {}, now).ok())) {
            return;
        }
        connector_->abandon(contact.id, now);
        contact = {};
    }
    void turn(Instant now) {
        (void)worker_->turn(now);
        while (const std::optional<cm::Event> event = connector_->poll_event()) {
            if (const auto* const up = std::get_if<cm::Established>(&*event)) {
                if (Contact* const contact = find(up->id); contact != nullptr) {
                    contact->up = true;
                    contact->said = up->private_data;
                    post_receives(*contact, kReceives);
                }
            } else if (const auto* const leaving = std::get_if<cm::DisconnectRequested>(&*event)) {
                (void)connector_->disconnect(leaving->id, {}, now);
            } else if (const auto* const released = std::get_if<cm::Released>(&*event)) {
                if (Contact* const contact = find(released->id); contact != nullptr) {
                    *contact = {};
                }
            }
        }
        std::array<verbs::Completion, 32> done;
        std::size_t count = 0;
        while ((count = queue_->poll(done)) != 0) {
            for (const verbs::Completion& completion : std::span(done).first(count)) {
                take(completion);
            }
        }
    }
    void write(const Contact& contact, std::span<const std::uint8_t> bytes, std::uint64_t remote, Rkey rkey,
               std::optional<std::uint32_t> immediate = {}) {
        const std::size_t at = written_at_ + next_slot_++ % kSlots * kSlotBytes;
        require(bytes.size() <= kSlotBytes);
        std::copy(bytes.begin(), bytes.end(), memory_.begin() + static_cast<std::ptrdiff_t>(at));
        write_own(contact, at, static_cast<std::uint32_t>(bytes.size()), remote, rkey, immediate);
    }
    // Writes the content that the memory has when the packet leaves.
    void write_own(const Contact& contact, std::size_t at, std::uint32_t bytes, std::uint64_t remote, Rkey rkey,
                   std::optional<std::uint32_t> immediate) {
        const std::array<verbs::Sge, 1> pieces{region_->sge(at, bytes)};
        verbs::SendRequest request;
        request.opcode = immediate ? verbs::WorkOpcode::RdmaWriteWithImmediate : verbs::WorkOpcode::RdmaWrite;
        request.immediate = immediate.value_or(0);
        request.sges = pieces;
        request.remote_address = remote;
        request.rkey = rkey;
        (void)contact.qp->post_send(request);
    }

    WirePort port;

private:
    static constexpr std::size_t kSlots = 64;
    static constexpr std::size_t kSlotBytes = 256;
    static constexpr verbs::Rights kAll =
        verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::RemoteWrite | verbs::Right::RemoteRead;

    static roce::EngineConfig config() {
        roce::EngineConfig config;
        config.seed = {99, 1};
        config.max_queue_pairs = 16;
        config.max_regions = 16;
        return config;
    }
    static void post_receives(Contact& contact, std::size_t count) {
        for (; count > 0; --count) {
            (void)contact.qp->post_receive(verbs::ReceiveRequest{});
        }
    }
    void take(const verbs::Completion& completion) {
        for (Contact& contact : contacts_) {
            if (completion.has_immediate && contact.qp != nullptr && contact.qp->qpn() == completion.qpn) {
                contact.came.push_back(completion.immediate);
                post_receives(contact, 1);
            }
        }
    }
    Contact* find(verbs::ConnectionId id) {
        const auto found = std::find_if(contacts_.begin(), contacts_.end(), [id](const Contact& contact) {
            return contact.qp != nullptr && contact.id == id;
        });
        return found == contacts_.end() ? nullptr : &*found;
    }

    std::unique_ptr<worker::Worker> worker_;
    verbs::Device device_;
    std::unique_ptr<verbs::Pd> pd_;
    std::vector<std::uint8_t> memory_;
    std::size_t written_at_;
    std::size_t next_slot_ = 0;
    std::unique_ptr<verbs::Mr> region_;
    std::unique_ptr<verbs::Cq> queue_;
    std::unique_ptr<connections::Home> home_;
    std::vector<Contact> contacts_;
    std::unique_ptr<verbs::Connector> connector_;  // ends before the queue pairs
};

}  // namespace cairn::test
