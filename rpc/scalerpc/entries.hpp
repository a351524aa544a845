// The entries of a server's clients, side by side. Each client writes its own, with its own key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "lib/base/result.hpp"
#include "rpc/scalerpc/session.hpp"

namespace cairn::scalerpc {

// The arguments of open() outlive the object.
class Entries {
public:
    // Takes the memory. Errors: no memory; the device has no room.
    Status open(std::uint16_t sessions, verbs::Device& device, verbs::Pd& pd, rpc::MsgPool& pool) {
        pool_ = &pool;
        memory_ = pool.allocate(sessions * kEntryBytes);
        if (!memory_.valid()) {
            return Error{"there is no memory for the entries of clients", "give the pool of messages more"};
        }
        auto region = device.register_memory(pd, memory_.span(),
                                             verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::BindWindow, 0);
        if (!region.ok()) {
            return region.error();
        }
        region_ = std::move(region).value();
        return Nothing{};
    }
    void close() noexcept {
        region_.reset();
        if (pool_ != nullptr) {
            pool_->release(memory_);
        }
    }
    // Clears the entry of a new client, and opens it to that client alone. Returns the welcome for the client. The send
    // queue has room (asserted).
    [[nodiscard]] News open_to(Session& session, std::unique_ptr<verbs::Mw> window) {
        const std::uint64_t offset = offset_of(session);
        std::fill_n(memory_.data + offset, kEntryBytes, std::uint8_t{0});
        verbs::WindowBind entry;
        entry.signalled = false;
        entry.offset = offset;
        entry.bytes = kEntryBytes;
        entry.rights = verbs::Rights{verbs::Right::RemoteWrite};
        const verbs::PostVerdict bound = window->bind(*session.qp, *region_, entry);
        CAIRN_ASSERT(bound == verbs::PostVerdict::Posted || bound == verbs::PostVerdict::WrongState);
        News welcome;
        welcome.kind = News::Kind::Welcome;
        welcome.grant = {region_->address() + offset, window->rkey()};
        session.guest->entry_window = std::move(window);
        return welcome;
    }
    [[nodiscard]] Entry operator[](const Session& session) const noexcept {
        return Entry::parse(memory_.data + offset_of(session));
    }

private:
    [[nodiscard]] static std::uint64_t offset_of(const Session& session) noexcept {
        return std::uint64_t{session.id.number()} * kEntryBytes;
    }

    rpc::MsgPool* pool_ = nullptr;
    rpc::MsgBuffer memory_{};
    std::unique_ptr<verbs::Mr> region_;
};

}  // namespace cairn::scalerpc
