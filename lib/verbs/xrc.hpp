// Extended reliable connections: domains and the receive queues in them, which peers name by number.
#pragma once

#include <optional>

#include "lib/verbs/objects.hpp"

namespace cairn::verbs {

// What XRC targets and receive queues have in common: a target leads to all queues of its domain and to no other.
class Xrcd : public Shared {
public:
    explicit Xrcd(roce::Engine& engine) : domain_(engine.xrc().create_domain()) {}
    [[nodiscard]] roce::Xrcd id() const noexcept { return domain_; }

private:
    roce::Xrcd domain_;
};

// A shared receive queue for the messages that name its number, whichever target of the domain they come through. They
// complete in its completion queue with the target's number and its own, and reach the memory of its protection domain
// alone. When it ends, what targets were receiving into its requests ends with it, and whoever names it is refused.
class XrcSrq final : public Srq {
public:
    XrcSrq(AsyncEvents& events, roce::Engine& engine, Pd& pd, Xrcd& domain, Cq& receives, std::uint32_t slots,
           std::uint32_t max_sges)
        : Srq(events, slots, max_sges), engine_(engine), pd_(pd), domain_(domain), receives_(receives) {}
    ~XrcSrq() override;

    // Once, when it is made. Errors: there are as many as there may be.
    Status take_number();
    [[nodiscard]] Srqn srqn() const noexcept { return srqn_; }
    [[nodiscard]] bool is_xrc() const noexcept override { return true; }
    // A message is coming into one of its requests.
    [[nodiscard]] bool in_use() const noexcept { return Srq::in_use() || engine_.receives_into(srqn_); }

private:
    roce::Engine& engine_;
    Hold<Pd> pd_;
    Hold<Xrcd> domain_;
    Hold<Cq> receives_;
    Srqn srqn_{};
};

}  // namespace cairn::verbs
