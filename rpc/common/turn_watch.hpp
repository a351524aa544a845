// Measures the parts of an endpoint's turn.
#pragma once

namespace cairn::rpc {

// Called on the endpoint's thread.
class TurnWatch {
public:
    // Called after all input was read, and handlers and completions have run. The endpoint composes its output next.
    virtual void on_taken() noexcept = 0;

protected:
    ~TurnWatch() = default;
};

}  // namespace cairn::rpc
