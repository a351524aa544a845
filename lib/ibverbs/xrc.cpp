#include "lib/ibverbs/xrc.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <tuple>

#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/of_process.hpp"
#include "lib/ibverbs/qp.hpp"

namespace cairn::ibverbs {

namespace {

// The domains that have a file, by adapter and inode.
struct XrcDomains {
    std::mutex mutex;
    std::map<std::tuple<const Adapter*, dev_t, ino_t>, std::weak_ptr<SharedXrcd>> by_file;
};

std::shared_ptr<SharedXrcd> make_domain(Adapter& adapter) {
    auto made = std::make_shared<SharedXrcd>();
    const std::lock_guard hold(adapter.lock());
    made->id = adapter.engine().xrc().create_domain();
    return made;
}

// Finds the domain of a file, or makes it, as `flags` say. Returns nullptr, with errno. EBADF: it is no file. EAGAIN:
// there is no domain. EINVAL: there is one.
std::shared_ptr<SharedXrcd> domain_of_file(Adapter& adapter, int fd, int flags) {
    struct stat info {};
    if (fstat(fd, &info) != 0) {
        return fail(EBADF);
    }
    auto& all = OfProcess<XrcDomains>::get();
    const std::lock_guard hold(all.mutex);
    std::erase_if(all.by_file, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<SharedXrcd>& known = all.by_file[{&adapter, info.st_dev, info.st_ino}];
    std::shared_ptr<SharedXrcd> domain = known.lock();
    if (domain == nullptr ? (flags & O_CREAT) == 0 : (flags & O_EXCL) != 0) {
        return fail(domain == nullptr ? EAGAIN : EINVAL);
    }
    if (domain == nullptr) {
        domain = make_domain(adapter);
        known = domain;
    }
    return domain;
}

[[nodiscard]] SharedTarget* find_target(const SharedXrcd& domain, Qpn qpn) noexcept {
    for (SharedTarget* const each : domain.targets) {
        if (each->connection->pair.qpn() == qpn) {
            return each;
        }
    }
    return nullptr;
}

}  // namespace

void SharedTarget::on_event() noexcept {
    for (auto event = connection->pair.poll_event(); event; event = connection->pair.poll_event()) {
        for (Qp* const each : holders) {
            each->tell(*event);
        }
    }
}

// Domains are not shared between processes: a process that opens the same file gets a domain of its own.
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* wanted) noexcept {
    constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    if ((wanted->comp_mask & kNeeded) != kNeeded || wanted->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED ||
        (wanted->oflags & ~(O_CREAT | O_EXCL)) != 0) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_xrcd* {
        auto xrcd = std::make_unique<Xrcd>();
        Adapter& adapter = adapter_of(context);
        set_context(*xrcd, context);
        xrcd->shared = wanted->fd < 0 ? make_domain(adapter) : domain_of_file(adapter, wanted->fd, wanted->oflags);
        return xrcd->shared == nullptr ? nullptr : xrcd.release();
    });
}

int close_xrcd(ibv_xrcd* xrcd) noexcept {
    Xrcd& closed = Xrcd::of(xrcd);
    {
        const std::lock_guard hold(adapter_of(xrcd->context).lock());
        if (closed.users != 0) {
            return EBUSY;
        }
    }
    delete &closed;
    return 0;
}

ibv_qp* open_shared_qp(ibv_context* context, ibv_qp_open_attr* wanted) noexcept {
    constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    if (wanted->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) {
        return fail(EOPNOTSUPP);
    }
    if ((wanted->comp_mask & kNeeded) != kNeeded || wanted->xrcd == nullptr || wanted->qp_type != IBV_QPT_XRC_RECV ||
        !is_of(context, wanted->xrcd)) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_qp* {
        Xrcd& domain = Xrcd::of(wanted->xrcd);
        auto qp = std::make_unique<Qp>();
        const std::lock_guard hold(adapter_of(context).lock());
        SharedTarget* const target = find_target(*domain.shared, Qpn{wanted->qp_num});
        if (target == nullptr) {
            return fail(EINVAL);
        }
        target->holders.push_back(qp.get());
        qp->stand_for(*target->holders.front());
        qp->set_context(context);
        qp->qp_base.qp_context = (wanted->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? wanted->qp_context : nullptr;
        qp->domain = &domain;
        ++domain.users;
        qp->place.join(Context::of(context).queue_pairs);
        return &qp.release()->qp_base;
    });
}

}  // namespace cairn::ibverbs
