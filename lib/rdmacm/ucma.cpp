#include "lib/rdmacm/ucma.hpp"

#include <cerrno>
#include <utility>

#include "lib/ibverbs/of_process.hpp"
#include "lib/rdmacm/ucma_answers.hpp"

namespace cairn::rdmacm::ucma {

File::~File() {
    if (channel.count.fd >= 0) {
        channel.count.close();
    }
}

// Returns the table. A child of fork() has none of its parent's files: they are of no use there.
Table& table() {
    return ibverbs::OfProcess<Table>::get();
}

int Table::open() {
    auto file = std::make_shared<File>();
    if (!file->channel.count.open()) {
        return -1;
    }
    const int fd = file->channel.count.fd;
    file->channel.fd = fd;
    const std::lock_guard hold(mutex_);
    files_[fd] = std::move(file);
    return fd;
}

bool Table::close(int fd) {
    std::vector<std::shared_ptr<KernelId>> ended;
    std::shared_ptr<File> file;
    {
        const std::lock_guard hold(mutex_);
        const auto found = files_.find(fd);
        if (found == files_.end()) {
            return false;
        }
        file = found->second;
        ended = ids_.all([&file](const KernelId& each) { return each.file == file; });
        files_.erase(found);
    }
    for (std::shared_ptr<KernelId>& each : ended) {
        static_cast<void>(remove(*file, each->name, each));
        end(*each->endpoint);
    }
    return true;
}

std::shared_ptr<File> Table::find(int fd) {
    const std::lock_guard hold(mutex_);
    const auto found = files_.find(fd);
    return found == files_.end() ? nullptr : found->second;
}

std::uint32_t Table::add(std::shared_ptr<KernelId> id) {
    const std::lock_guard hold(mutex_);
    const Endpoint* const endpoint = id->endpoint.get();
    const std::uint32_t name = ids_.add(std::move(id));
    names_[endpoint] = name;
    return name;
}

std::shared_ptr<KernelId> Table::find_locked(const File& file, std::uint32_t name) const noexcept {
    std::shared_ptr<KernelId> id = ids_.find(name);
    return id != nullptr && id->file.get() == &file ? id : nullptr;
}

std::shared_ptr<KernelId> Table::find(const File& file, std::uint32_t name) {
    const std::lock_guard hold(mutex_);
    return find_locked(file, name);
}

std::optional<std::uint32_t> Table::remove(const File& file, std::uint32_t name, std::shared_ptr<KernelId>& id) {
    const std::lock_guard hold(mutex_);
    std::shared_ptr<KernelId> found = find_locked(file, name);
    if (found == nullptr) {
        return std::nullopt;
    }
    for (const std::shared_ptr<KernelGroup>& each :
         groups_.all([name](const KernelGroup& group) { return group.of_id == name; })) {
        groups_.remove(each->name);
    }
    ids_.remove(name);
    names_.erase(found->endpoint.get());
    id = std::move(found);
    return id->reported;
}

std::uint64_t Table::rename(KernelId& id, std::uint64_t uid) {
    const std::lock_guard hold(mutex_);
    return std::exchange(id.uid, uid);
}

std::uint32_t Table::migrate(KernelId& id, const std::shared_ptr<File>& to) {
    const std::lock_guard hold(mutex_);
    rdmacm::migrate(*id.endpoint, to->channel);
    id.file = to;
    return id.reported;
}

std::uint32_t Table::add(std::shared_ptr<KernelGroup> group) {
    const std::lock_guard hold(mutex_);
    return groups_.add(std::move(group));
}

std::shared_ptr<KernelGroup> Table::find_group(const File& file, std::uint32_t name) {
    const std::lock_guard hold(mutex_);
    std::shared_ptr<KernelGroup> group = groups_.find(name);
    return group != nullptr && find_locked(file, group->of_id) != nullptr ? group : nullptr;
}

std::uint32_t Table::remove(const KernelGroup& group) {
    const std::lock_guard hold(mutex_);
    groups_.remove(group.name);
    return group.reported;
}

std::optional<abi::rdma_ucm_event_resp> Table::next_event(const std::shared_ptr<File>& file) {
    std::unique_ptr<Event> event;  // dropped events end outside of the lock
    const std::lock_guard hold(mutex_);
    event = take_unseen(file->channel);
    return event == nullptr ? std::nullopt : judge(file, *event);
}

std::optional<abi::rdma_ucm_event_resp> Table::judge(const std::shared_ptr<File>& file, Event& event) {
    const auto named = names_.find(event.to);
    const std::shared_ptr<KernelId> id = named == names_.end() ? nullptr : ids_.find(named->second);
    if (id == nullptr || id->uid == 0) {
        return std::nullopt;
    }
    abi::rdma_ucm_event_resp told = event_answer(event, id->endpoint->is_datagrams());
    told.uid = id->uid;
    told.id = id->name;
    if (event.asked != nullptr) {
        const Endpoint* const endpoint = event.asked.get();
        told.id = ids_.add(std::make_shared<KernelId>(file, 0, std::move(event.asked)));
        names_[endpoint] = told.id;
    } else if (event.group != nullptr) {
        const auto name = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(event.group->context));
        const std::shared_ptr<KernelGroup> group = groups_.find(name);
        if (group == nullptr) {
            return std::nullopt;  // joined twice, and left by this name: the other event was dropped
        }
        told.uid = group->uid;
        told.id = name;
        ++group->reported;
    }
    ++id->reported;
    return told;
}

}  // namespace cairn::rdmacm::ucma
