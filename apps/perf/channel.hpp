// The channel of one test's messages: a queue pair of a connection, or one of datagrams with their destination.
#pragma once

#include <array>
#include <memory>

#include "apps/perf/options.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::perf {

[[nodiscard]] inline verbs::WorkOpcode opcode_of(Operation operation) noexcept {
    constexpr std::array<verbs::WorkOpcode, static_cast<std::size_t>(Operation::Count)> kOpcodes{
        verbs::WorkOpcode::Send, verbs::WorkOpcode::RdmaWrite, verbs::WorkOpcode::RdmaRead,
        verbs::WorkOpcode::CompareSwap, verbs::WorkOpcode::FetchAdd};
    return kOpcodes[static_cast<std::size_t>(operation)];
}

class Channel {
public:
    static Result<Channel> create(Transport transport, verbs::Device& device, verbs::Pd& pd, verbs::QpCapacity capacity,
                                  const verbs::QpQueues& queues) {
        Channel made;
        if (transport == Transport::Ud) {
            capacity.max_sges = 2;  // for the IP header and the message
            auto pair = device.create_datagram_qp(pd, capacity, queues);
            if (!pair.ok()) {
                return pair.error();
            }
            made.datagrams_ = std::move(pair).value();
            (void)made.datagrams_->bring_up(verbs::kRdmaCmQkey);
            return made;
        }
        capacity.max_sges = 1;
        capacity.service = transport == Transport::Uc ? verbs::Service::Uc : verbs::Service::Rc;
        auto pair = device.create_qp(pd, capacity, queues);
        if (!pair.ok()) {
            return pair.error();
        }
        made.connected_ = std::move(pair).value();
        return made;
    }

    [[nodiscard]] verbs::Qp& connected() noexcept { return *connected_; }
    [[nodiscard]] Qpn qpn() const noexcept { return connected_ != nullptr ? connected_->qpn() : datagrams_->qpn(); }
    [[nodiscard]] bool is_up() const noexcept {
        return connected_ == nullptr || connected_->state() == verbs::QpState::Rts;
    }
    // Sets the destination of datagrams.
    void set_peer(std::unique_ptr<verbs::Ah> way, Qpn qpn) noexcept {
        way_ = std::move(way);
        peer_ = qpn;
    }

    [[nodiscard]] verbs::PostVerdict post_send(const verbs::SendRequest& request) noexcept {
        return connected_ != nullptr ? connected_->post_send(request)
                                     : datagrams_->post_send({request, way_.get(), peer_, verbs::kRdmaCmQkey});
    }
    // Posts a receive request. `header` receives the IP header of a datagram, kGrhBytes that are not used.
    [[nodiscard]] verbs::PostVerdict post_receive(std::uint64_t wr_id, const verbs::Sge& header,
                                                  const verbs::Sge& message) noexcept {
        const std::array<verbs::Sge, 2> sges{header, message};
        return connected_ != nullptr ? connected_->post_receive({wr_id, std::span(sges).last(1)})
                                     : datagrams_->post_receive({wr_id, sges});
    }

private:
    std::unique_ptr<verbs::Qp> connected_;
    std::unique_ptr<verbs::UdQp> datagrams_;
    std::unique_ptr<verbs::Ah> way_;
    Qpn peer_{};
};

// Returns the size of a received message.
[[nodiscard]] inline std::uint32_t message_bytes(const verbs::Completion& completion) noexcept {
    return completion.bytes - (completion.has_grh ? verbs::kGrhBytes : 0);
}

}  // namespace cairn::perf
