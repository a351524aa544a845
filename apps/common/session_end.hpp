// The texts for users about the end of an eRPC session.
#pragma once

#include "rpc/erpc/call.hpp"

namespace cairn::app {

// Returns why a session ended early, and the remedy.
[[nodiscard]] inline const char* why(erpc::RefuseReason reason) noexcept {
    switch (reason) {
        case erpc::RefuseReason::NoSessionLeft:
            return "the server has no more for this host; use fewer sessions";
        case erpc::RefuseReason::BadParameters:
            return "the server has another --path-mtu; give both the same";
        case erpc::RefuseReason::NotServing:
            return "the peer does not serve; start it as a server";
        case erpc::RefuseReason::PathTooNarrow:
            return "small packets arrive, those of --path-mtu do not; give both a smaller one";
        case erpc::RefuseReason::None:
        case erpc::RefuseReason::NoHandler:  // this case and the cases below concern requests
        case erpc::RefuseReason::AnswerLost:
        case erpc::RefuseReason::GivenUp:
        case erpc::RefuseReason::Ahead:
        case erpc::RefuseReason::TooLong:
        case erpc::RefuseReason::NotExecuted:
            break;
    }
    return "the peer is gone; is the server running?";
}

}  // namespace cairn::app
