#include "lib/ibverbs/adapters_in_use.hpp"

#include <mutex>
#include <vector>

#include "lib/ibverbs/lock.hpp"
#include "lib/ibverbs/of_process.hpp"

namespace cairn::ibverbs {

namespace {

struct Entry {
    Adapter* adapter;
    std::string device;
};

struct InUse {
    Lock lock;  // taken before those of adapters
    std::vector<Entry> adapters;
};

}  // namespace

void AdaptersInUse::add(Adapter& adapter, const std::string& device) {
    auto& all = OfProcess<InUse>::get();
    const std::lock_guard hold(all.lock);
    all.adapters.push_back({&adapter, device});
}

void AdaptersInUse::remove(const Adapter& adapter) noexcept {
    auto& all = OfProcess<InUse>::get();
    const std::lock_guard hold(all.lock);
    std::erase_if(all.adapters, [&adapter](const Entry& each) { return each.adapter == &adapter; });
}

void AdaptersInUse::visit(const Visit& each) {
    auto& all = OfProcess<InUse>::get();
    const std::lock_guard hold(all.lock);
    for (const Entry& one : all.adapters) {
        each(one.device, *one.adapter);
    }
}

}  // namespace cairn::ibverbs
