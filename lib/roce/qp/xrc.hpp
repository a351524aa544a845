// Extended reliable connections: domains, and the shared receive queues in them, which peers name by number (IBTA vol.
// 1, annex A14).
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/roce/qp/completion_queue.hpp"
#include "lib/roce/qp/receive_queue.hpp"

namespace cairn::roce {

// The queues that messages of a queue pair go to, and the domain whose rights apply. An XRC target has none of its own:
// each request names them.
struct Receiver {
    ReceiveQueue* receives = nullptr;
    CompletionQueue* completions = nullptr;
    Pd pd{};
    Srqn srqn{};  // of XRC; 0: none
};

using Xrcd = Number<struct XrcdTag, std::uint32_t>;  // handle of an XRC domain; 0 is none

// All domains and numbered receive queues of one engine. Numbers begin where the owner chooses and go up. A number is
// used again after all others were used. It is looked up for each request, so that a queue can end at any time. Driven
// by the engine's thread; look-ups allocate nothing.
class XrcTable {
public:
    explicit XrcTable(Srqn before_first = {}) : entries_(1), last_(before_first) {}
    XrcTable(const XrcTable&) = delete;
    XrcTable& operator=(const XrcTable&) = delete;

    // Creates a domain. Domains are numbered and never end.
    [[nodiscard]] Xrcd create_domain() noexcept { return Xrcd{++domains_}; }

    // Adds a receive queue to a domain. Returns the number by which peers name it; `receiver.srqn` is ignored. The
    // parts of `receiver` live until it is removed. Error: there are kMaxXrcQueues already.
    [[nodiscard]] Result<Srqn> add(Xrcd domain, const Receiver& receiver);
    void remove(Srqn srqn) noexcept;  // the number is in use (asserted)

    // Returns nullptr if the domain has no queue of this number.
    [[nodiscard]] const Receiver* find(Srqn srqn, Xrcd domain) const noexcept {
        const Entry& entry = entries_[srqn.value & (entries_.size() - 1)];
        return entry.receiver.srqn == srqn && entry.domain == domain ? &entry.receiver : nullptr;
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

    // Returns the queue in place of a completion queue, which a target does not have. Nothing ever comes into it.
    [[nodiscard]] CompletionQueue& nobodys() noexcept { return nobodys_; }

private:
    struct Entry {
        Receiver receiver{};
        Xrcd domain{};  // 0: free
    };

    [[nodiscard]] Entry& at(Srqn srqn) noexcept { return entries_[srqn.value & (entries_.size() - 1)]; }
    void grow();

    std::vector<Entry> entries_;  // by number, modulo their count, a power of two
    Srqn last_;
    std::uint32_t size_ = 0;
    std::uint32_t domains_ = 0;
    CompletionQueue nobodys_{1};
};

// Makes a queue pair an XRC target: its requests may name the receive queues of this domain.
struct XrcTarget {
    const XrcTable* queues = nullptr;  // nullptr: the queue pair is no target
    Xrcd domain{};

    [[nodiscard]] explicit operator bool() const noexcept { return queues != nullptr; }
    [[nodiscard]] const Receiver* find(Srqn srqn) const noexcept { return queues->find(srqn, domain); }
};

}  // namespace cairn::roce
