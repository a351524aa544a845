#include "fs/daemon/shard_door.hpp"

namespace cairn::fs {

Result<std::unique_ptr<NewsBox>> NewsBox::create() {
    auto wakeup = Wakeup::create();
    if (!wakeup.ok()) {
        return wakeup.error();
    }
    return std::unique_ptr<NewsBox>(new NewsBox(std::move(wakeup).value()));
}

NewsBox::~NewsBox() {
    take([](ShardNews&) noexcept {});
}

void NewsBox::tell(std::unique_ptr<ShardNews> news) noexcept {
    const bool posted = box_.post(*news.release());
    CAIRN_ASSERT(posted);  // the box never closes
    wakeup_->wake();
}

}  // namespace cairn::fs
