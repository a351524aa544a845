#include "lib/ibverbs/window.hpp"

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/qp.hpp"
#include "lib/ibverbs/translate.hpp"
#include "lib/roce/qp/window_key.hpp"

namespace cairn::ibverbs {

namespace {

// This flag gives peers nothing. Adapters accept it with the others.
constexpr unsigned kMeansNothing = IBV_ACCESS_LOCAL_WRITE;

[[nodiscard]] int describe(ibv_context* context, const ibv_mw_bind_info& wanted, Rkey key,
                           roce::SendRequest& to) noexcept {
    const auto rights = to_rights(wanted.mw_access_flags & ~kMeansNothing);
    if (!rights || (wanted.mr == nullptr && wanted.length != 0) || !is_of(context, wanted.mr)) {
        return EINVAL;
    }
    to.opcode = roce::WorkOpcode::BindWindow;
    to.bind.window = key;
    to.bind.region = wanted.mr == nullptr ? Lkey{} : Lkey{wanted.mr->lkey};
    to.bind.address = wanted.addr;
    to.bind.bytes = wanted.length;
    to.bind.rights = *rights;
    to.bind.zero_based = (wanted.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
    return 0;
}

}  // namespace

int describe_binding(ibv_context* context, const ibv_send_wr& from, roce::SendRequest& to) noexcept {
    if (from.bind_mw.mw == nullptr || !is_of(context, from.bind_mw.mw) || from.bind_mw.mw->type != IBV_MW_TYPE_2 ||
        !roce::name_one_window(Rkey{from.bind_mw.mw->rkey}, Rkey{from.bind_mw.rkey})) {
        return EINVAL;
    }
    return describe(context, from.bind_mw.bind_info, Rkey{from.bind_mw.rkey}, to);
}

ibv_mw* allocate_window(ibv_pd* pd, ibv_mw_type type) noexcept {
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_mw* {
        auto window = std::make_unique<Window>();
        Adapter& adapter = adapter_of(pd->context);
        const std::lock_guard hold(adapter.lock());
        const Result<Rkey> key = adapter.engine().create_window(
            Pd::of(pd).id(), type == IBV_MW_TYPE_1 ? roce::WindowType::Type1 : roce::WindowType::Type2B);
        if (!key.ok()) {
            complain_of(Limit::Regions, std::uint64_t{adapter.engine().memory().regions_in_use()} + 1);
            return fail(ENOMEM);
        }
        set_context(*window, pd->context);
        window->pd = pd;
        window->rkey = key.value().value;
        window->handle = key.value().value;
        window->type = type;
        ++Pd::of(pd).users;
        return window.release();
    });
}

int bind_window(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* wanted) noexcept {
    if (mw->type != IBV_MW_TYPE_1 || !is_of(qp->context, mw)) {
        return EINVAL;
    }
    Qp& by = Qp::of(qp);
    Adapter& adapter = adapter_of(qp->context);
    const std::lock_guard hold(adapter.lock());
    roce::SendRequest request;
    const Rkey key = roce::key_of_next_binding(Rkey{mw->rkey});
    int reason = by.is_datagrams() ? EINVAL : describe(qp->context, wanted->bind_info, key, request);
    if (reason == 0) {
        request.wr_id = wanted->wr_id;
        request.signalled = by.signals_all || (wanted->send_flags & IBV_SEND_SIGNALED) != 0;
        request.fence = (wanted->send_flags & IBV_SEND_FENCE) != 0;
        reason = free_slots(by) == 0 ? ENOMEM : errno_of(by.connection->pair.post_send(request));
    }
    if (reason == 0) {
        mw->rkey = key.value;
        wake(by, adapter.engine());
        adapter.on_posted(0);
    }
    return reason;
}

int free_window(ibv_mw* mw) noexcept {
    {
        Adapter& adapter = adapter_of(mw->context);
        const std::lock_guard hold(adapter.lock());
        if (!adapter.engine().destroy_window(Rkey{mw->rkey})) {
            return EINVAL;
        }
        --Pd::of(mw->pd).users;
    }
    delete &Window::of(mw);
    return 0;
}

}  // namespace cairn::ibverbs
