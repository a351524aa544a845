// Memory windows: parts of a region that peers may use by keys of their own. Work requests bind and invalidate them in
// order (IBTA vol. 1, 10.6.6.2).
//
//     auto window = device.create_window(*pd, WindowType::Type2B).value();
//     (void)window->bind(*qp, *mr, {.wr_id = 1, .offset = 4096, .bytes = 512, .rights = Right::RemoteWrite});
//     // Once request 1 completed, the peer of `qp` may write there by window->rkey(). Then either end takes it back:
//     (void)window->invalidate(*qp, 2);  // or the peer's SendWithInvalidate of that key
//
// The region needs the right BindWindow. A binding with more than that permits completes as MemoryManagement and ends
// the connection.
#pragma once

#include "lib/roce/qp/window_key.hpp"
#include "lib/verbs/qp.hpp"

namespace cairn::verbs {

struct WindowBind {
    std::uint64_t wr_id = 0;
    bool signalled = true;
    std::uint64_t offset = 0;  // in the region
    std::uint64_t bytes = 0;   // 0: unbind; type 1 only
    Rights rights{};           // remote ones
    bool zero_based = false;   // peers name its first byte 0 instead of its address in the region; type 2B only
};

// Made by a Device. A window of type 1 may be bound anew at any time and used through any queue pair of its domain. A
// window of type 2B is bound when it is free, and used through the queue pair that bound it. It is free again after
// invalidation or the end of that queue pair. A window may end at any time; peers reach nothing through it from then
// on. A region cannot end while a window is bound to it.
class Mw {
public:
    Mw(roce::Engine& engine, Pd& pd, WindowType type, Rkey key) noexcept
        : engine_(engine), pd_(pd), type_(type), key_(key) {}
    Mw(const Mw&) = delete;
    Mw& operator=(const Mw&) = delete;
    ~Mw() {
        const bool ended = engine_.destroy_window(key_);
        CAIRN_ASSERT(ended);
    }

    // Posts a BindWindow. If it is Posted, rkey() is the key of the new binding; otherwise nothing changed.
    [[nodiscard]] PostVerdict bind(Qp& qp, const Mr& mr, const WindowBind& wanted) noexcept {
        SendRequest request;
        request.opcode = WorkOpcode::BindWindow;
        request.wr_id = wanted.wr_id;
        request.signalled = wanted.signalled;
        request.bind.window = roce::key_of_next_binding(key_);
        request.bind.region = mr.lkey();
        request.bind.address = mr.address() + wanted.offset;
        request.bind.bytes = wanted.bytes;
        request.bind.rights = wanted.rights;
        request.bind.zero_based = wanted.zero_based;
        const PostVerdict verdict = qp.post_send(request);
        key_ = verdict == PostVerdict::Posted ? request.bind.window : key_;
        return verdict;
    }
    // Posts a LocalInvalidate, for type 2B only. When it completes, the window is free and its key is invalid.
    [[nodiscard]] PostVerdict invalidate(Qp& qp, std::uint64_t wr_id, bool signalled = true) const noexcept {
        SendRequest request;
        request.opcode = WorkOpcode::LocalInvalidate;
        request.wr_id = wr_id;
        request.signalled = signalled;
        request.invalidate = key_;
        return qp.post_send(request);
    }

    // Returns the key of the last binding that was posted.
    [[nodiscard]] Rkey rkey() const noexcept { return key_; }
    [[nodiscard]] WindowType type() const noexcept { return type_; }
    [[nodiscard]] bool in_use() const noexcept { return false; }

private:
    roce::Engine& engine_;
    Hold<Pd> pd_;
    WindowType type_;
    Rkey key_;
};

}  // namespace cairn::verbs
