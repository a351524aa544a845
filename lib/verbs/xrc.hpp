// Extended reliable connections: domains, and the receive queues in them, which peers name by number.
#pragma once

#include <optional>

#include "lib/verbs/objects.hpp"

namespace cairn::verbs {

// Joins XRC targets and receive queues: a target leads to all queues of its domain and to no others.
class Xrcd : public Shared {
public:
    explicit Xrcd(roce::Engine& engine) : domain_(engine.xrc().create_domain()) {}
    [[nodiscard]] roce::Xrcd id() const noexcept { return domain_; }

private:
    roce::Xrcd domain_;
};

// A shared receive queue for the messages that name its number, by whichever target of the domain they come. Their
// completions go to its completion queue and carry the target's number and its own. They reach only the memory of its
// protection domain. When the queue ends, a target that is receiving into one of its requests stops, and a message that
// names its number is refused.
class XrcSrq final : public Srq {
public:
    XrcSrq(AsyncEvents& events, roce::Engine& engine, Pd& pd, Xrcd& domain, Cq& receives, std::uint32_t slots,
           std::uint32_t max_sges)
        : Srq(events, slots, max_sges), engine_(engine), pd_(pd), domain_(domain), receives_(receives) {}
    ~XrcSrq() override;

    // Takes the queue's number. Called once, when the queue is made. Errors: the limit of queues is reached.
    Status take_number();
    [[nodiscard]] Srqn srqn() const noexcept { return srqn_; }
    [[nodiscard]] bool is_xrc() const noexcept override { return true; }
    // Returns true if the queue is in use; also while a message is coming into one of its requests.
    [[nodiscard]] bool in_use() const noexcept { return Srq::in_use() || engine_.receives_into(srqn_); }

private:
    roce::Engine& engine_;
    Hold<Pd> pd_;
    Hold<Xrcd> domain_;
    Hold<Cq> receives_;
    Srqn srqn_{};
};

}  // namespace cairn::verbs
