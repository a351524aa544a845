// Keeps a signal from ending the program in the midst of a write to a file.
#pragma once

namespace cairn::port {

// The kernel ends a program between two pages of a write, whichever of its threads gets the signal. So a handler
// replaces the default action of the signal. It ends the program, by the same signal, once no thread is inside. A
// thread is inside while it has a gate.
class WriteGate {
public:
    // Sets the handler for SIGHUP, SIGINT and SIGTERM where the default action is in force. A handler that the program
    // sets later takes its place.
    static void guard() noexcept;

    WriteGate() noexcept;
    WriteGate(const WriteGate&) = delete;
    WriteGate& operator=(const WriteGate&) = delete;
    ~WriteGate();
    // Returns false if the program is about to end: nothing is to be written any more.
    [[nodiscard]] bool is_open() const noexcept { return is_open_; }

private:
    const bool is_open_;
};

}  // namespace cairn::port
