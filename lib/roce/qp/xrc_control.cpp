#include "lib/roce/qp/xrc.hpp"

#include <string>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::roce {

Result<Srqn> XrcTable::add(Xrcd domain, const Receiver& receiver) {
    CAIRN_ASSERT(domain.value != 0 && domain.value <= domains_);
    CAIRN_ASSERT(receiver.receives != nullptr && receiver.completions != nullptr);
    if (size_ == kMaxXrcQueues) {
        return Error{"there are " + std::to_string(size_) + " XRC receive queues already", "destroy unused ones"};
    }
    if (size_ == entries_.size()) {
        grow();
    }
    do {
        last_ = Srqn{last_.value + 1};
    } while (last_.value == 0 || at(last_).domain.value != 0);
    at(last_) = {receiver, domain};
    at(last_).receiver.srqn = last_;
    ++size_;
    return last_;
}

// Doubles the table. Numbers that had places of their own still do.
void XrcTable::grow() {
    std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(entries_.size() * 2));
    for (const Entry& entry : before) {
        at(entry.receiver.srqn) = entry;
    }
}

void XrcTable::remove(Srqn srqn) noexcept {
    CAIRN_ASSERT(srqn.value != 0 && at(srqn).receiver.srqn == srqn);
    at(srqn) = {};
    --size_;
}

}  // namespace cairn::roce
