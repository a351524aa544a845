#include "fs/client/open_files.hpp"

#include "lib/base/assert.hpp"

namespace cairn::fs {

File& OpenFiles::add(const Attributes& attributes, const Grant& grant, const FileWays& ways) {
    auto file = std::make_shared<File>(attributes, grant, ways);
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(files_.size()));
        files_.emplace_back();
    }
    file->place = free_.back();
    free_.pop_back();
    File& added = *file;
    files_[added.place] = std::move(file);
    return added;
}

void OpenFiles::remove(const File& file) noexcept {
    std::shared_ptr<File> removed;  // ends after the lock
    const std::lock_guard lock(mutex_);
    CAIRN_ASSERT(file.place < files_.size() && files_[file.place].get() == &file);
    free_.push_back(file.place);
    removed = std::move(files_[file.place]);
}

std::vector<std::shared_ptr<File>> OpenFiles::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<File>> open;
    for (const std::shared_ptr<File>& file : files_) {
        if (file) {
            open.push_back(file);
        }
    }
    return open;
}

}  // namespace cairn::fs
