// The kernel's part of rdma_cm for the distribution's librdmacm, in this process: files of /dev/infiniband/rdma_cm, and
// the ids and groups that were made by them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/ucma_command.hpp"

namespace cairn::rdmacm::ucma {

// An opened file. Its descriptor is that of the channel, which counts the events to be read.
struct File {
    Channel channel{};

    File() = default;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
};

struct KernelId {
    KernelId(std::shared_ptr<File> of, std::uint64_t told_as, OwnedEndpoint made) noexcept
        : file(std::move(of)), uid(told_as), endpoint(std::move(made)) {}

    std::uint32_t name = 0;
    // The table's lock guards these.
    std::shared_ptr<File> file;
    std::uint64_t uid;           // 0: of a request that the program has not accepted
    std::uint32_t reported = 0;  // events that the program got, and will acknowledge before the id ends

    OwnedEndpoint endpoint;  // ends before the file
};

// A multicast group that an id joined.
struct KernelGroup {
    std::uint32_t name = 0;
    std::uint64_t uid = 0;
    std::uint32_t of_id = 0;
    std::uint32_t reported = 0;
    End end{};
};

// The objects of a kind by their names. A name is the lowest that is free: librdmacm has tables by them.
template <class Object>
class Named {
public:
    // Adds the object and returns its name. Throws bad_alloc.
    std::uint32_t add(std::shared_ptr<Object> object) {
        std::size_t free = 0;
        while (free < all_.size() && all_[free] != nullptr) {
            ++free;
        }
        if (free == all_.size()) {
            all_.emplace_back();
        }
        all_[free] = std::move(object);
        all_[free]->name = static_cast<std::uint32_t>(free);
        return all_[free]->name;
    }
    // Returns the object; nullptr if none has that name.
    [[nodiscard]] std::shared_ptr<Object> find(std::uint32_t name) const noexcept {
        return name < all_.size() ? all_[name] : nullptr;
    }
    void remove(std::uint32_t name) noexcept { all_[name] = nullptr; }
    // Returns the objects that `which` chooses. Throws bad_alloc.
    template <class Which>
    [[nodiscard]] std::vector<std::shared_ptr<Object>> all(const Which& which) const {
        std::vector<std::shared_ptr<Object>> chosen;
        for (const std::shared_ptr<Object>& each : all_) {
            if (each != nullptr && which(*each)) {
                chosen.push_back(each);
            }
        }
        return chosen;
    }

private:
    std::vector<std::shared_ptr<Object>> all_;
};

// All files, ids and groups. The lock is taken before the EventLock, and with no other. An id is found only through the
// file that has it. An object that is removed gets no more events; its program ends it outside of the lock.
class Table {
public:
    // Opens a file. Returns its descriptor; -1, with errno.
    [[nodiscard]] int open();
    // Ends the file and all objects that were made by it. Returns false if the descriptor is of no such file.
    bool close(int fd);
    [[nodiscard]] std::shared_ptr<File> find(int fd);

    [[nodiscard]] std::uint32_t add(std::shared_ptr<KernelId> id);
    [[nodiscard]] std::shared_ptr<KernelId> find(const File& file, std::uint32_t name);
    // Removes the id. Returns how many events the program got of it; nullopt if there is no such id. `id` is it, for
    // its last owner.
    [[nodiscard]] std::optional<std::uint32_t> remove(const File& file, std::uint32_t name,
                                                      std::shared_ptr<KernelId>& id);
    // Sets the number by which the program knows the id from now on. Returns the one before.
    std::uint64_t rename(KernelId& id, std::uint64_t uid);
    // Moves the id to another file. Returns how many events the program got of it.
    [[nodiscard]] std::uint32_t migrate(KernelId& id, const std::shared_ptr<File>& to);

    [[nodiscard]] std::uint32_t add(std::shared_ptr<KernelGroup> group);
    [[nodiscard]] std::shared_ptr<KernelGroup> find_group(const File& file, std::uint32_t name);
    // Removes the group. Returns how many events the program got of it.
    [[nodiscard]] std::uint32_t remove(const KernelGroup& group);

    // Returns the first event that the program is to get; nullopt if there is none. Drops events of ids that ended, or
    // that the program has not accepted. Throws bad_alloc.
    [[nodiscard]] std::optional<abi::rdma_ucm_event_resp> next_event(const std::shared_ptr<File>& file);

private:
    [[nodiscard]] std::shared_ptr<KernelId> find_locked(const File& file, std::uint32_t name) const noexcept;
    [[nodiscard]] std::optional<abi::rdma_ucm_event_resp> judge(const std::shared_ptr<File>& file, Event& event);

    std::mutex mutex_;
    std::unordered_map<int, std::shared_ptr<File>> files_;  // by their descriptors
    Named<KernelId> ids_;
    Named<KernelGroup> groups_;
    std::unordered_map<const Endpoint*, std::uint32_t> names_;  // of ids
};

// Returns the table of this process. Throws bad_alloc.
[[nodiscard]] Table& table();

// Carries out the command that a program wrote to the file. Returns an errno value. A cancellation point while it waits
// for an event.
[[nodiscard]] int perform(const std::shared_ptr<File>& file, std::span<const std::uint8_t> written);

}  // namespace cairn::rdmacm::ucma
