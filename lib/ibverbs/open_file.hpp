// The file that the descriptor of an opened device leads to: its objects, which parts of a process import from each
// other.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "lib/ibverbs/device.hpp"

namespace cairn::ibverbs {

struct Pd;

// The state of a thing that several objects of verbs.h stand for. The thing ends with ibv_dealloc_pd() or its like,
// called for any of these objects. The others learn of it at their next use. The adapter's lock guards it.
struct SharedDomain {
    roce::Pd id{};  // none: it has ended
};

struct SharedMemory {
    std::unique_ptr<std::uint8_t, void (*)(void*)> bytes{nullptr, std::free};  // nullptr: it has ended
    std::size_t size = 0;
    std::uint32_t users = 0;  // regions
};

struct SharedRegion {
    enum class Kind : std::uint8_t { Ordinary, Null, DeviceMemory };

    Kind kind = Kind::Ordinary;
    unsigned access = 0;
    Rkey key{};               // none: it has ended
    Pd* user = nullptr;       // the domain that counts it
    void* address = nullptr;  // of ordinary memory
    std::size_t size = 0;     // as programs see it
    std::vector<std::uint8_t> null_bytes{};
    std::shared_ptr<SharedMemory> memory{};  // of device memory
};

// Objects, found by number.
template <class Object>
class ByHandle {
public:
    void add(std::uint32_t handle, const std::shared_ptr<Object>& object) { objects_[handle] = object; }
    // Returns the object; nullptr if there is none.
    [[nodiscard]] std::shared_ptr<Object> find(std::uint32_t handle) const noexcept {
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second.lock();
    }
    void remove(std::uint32_t handle) noexcept { objects_.erase(handle); }
    // Calls `each` with all that have not ended. `each` adds and removes none.
    template <class Each>
    void visit(const Each& each) const {
        for (const auto& [handle, known] : objects_) {
            if (const std::shared_ptr<Object> object = known.lock()) {
                each(*object);
            }
        }
    }

private:
    std::map<std::uint32_t, std::weak_ptr<Object>> objects_;
};

// The objects of a file. The adapter's lock guards them.
struct OpenFile {
    const Device* device = nullptr;
    std::shared_ptr<Adapter> adapter;
    std::uint32_t contexts = 0;  // that are open
    std::uint32_t last_handle = 0;
    std::size_t device_memory_bytes = 0;  // that are in use
    ByHandle<SharedDomain> domains{};
    ByHandle<SharedRegion> regions{};
    ByHandle<SharedMemory> memories{};

    // Makes a descriptor of the file, by which imports find it. Returns -1, with errno, if none is left.
    [[nodiscard]] static int make(const std::shared_ptr<OpenFile>& file);
    // Finds the file of a descriptor. Returns nullptr, with errno. EINVAL: it is no descriptor. ENODEV: it is of no
    // device. EOPNOTSUPP: it is another process's.
    [[nodiscard]] static std::shared_ptr<OpenFile> find(int fd);
};

}  // namespace cairn::ibverbs
