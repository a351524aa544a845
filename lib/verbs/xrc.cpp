#include "lib/verbs/xrc.hpp"

namespace cairn::verbs {

Status XrcSrq::take_number() {
    const Result<Srqn> number = engine_.xrc().add(domain_->id(), {&queue(), &receives_->queue(), pd_->id(), {}});
    if (!number.ok()) {
        return number.error();
    }
    srqn_ = number.value();
    return Nothing{};
}

XrcSrq::~XrcSrq() {
    if (srqn_ != Srqn{}) {
        engine_.xrc().remove(srqn_);
    }
}

}  // namespace cairn::verbs
