// Who measures the parts of an endpoint's turn.
#pragma once

namespace cairn::rpc {

// Called on the endpoint's thread.
class TurnWatch {
public:
    // What came has been read, handlers and completions have run. What is to leave is composed now.
    virtual void on_taken() noexcept = 0;

protected:
    ~TurnWatch() = default;
};

}  // namespace cairn::rpc
