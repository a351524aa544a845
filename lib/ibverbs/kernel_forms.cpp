// Converts the structures of the kernel for queue pairs and paths, which librdmacm and others pass on, to those of
// verbs.h.
#include <algorithm>
#include <iterator>

#include "lib/ibverbs/private_api.hpp"

namespace {

template <class To, class From>
void set(To& to, From from) noexcept {
    to = static_cast<To>(from);
}

// The two structures of a path record have fields of one name each.
template <class To, class From>
void copy_path(To& to, const From& from) noexcept {
    set(to.dlid, from.dlid);
    set(to.slid, from.slid);
    set(to.raw_traffic, from.raw_traffic);
    set(to.flow_label, from.flow_label);
    set(to.hop_limit, from.hop_limit);
    set(to.traffic_class, from.traffic_class);
    set(to.reversible, from.reversible);
    set(to.numb_path, from.numb_path);
    set(to.pkey, from.pkey);
    set(to.sl, from.sl);
    set(to.mtu_selector, from.mtu_selector);
    set(to.mtu, from.mtu);
    set(to.rate_selector, from.rate_selector);
    set(to.rate, from.rate);
    set(to.packet_life_time_selector, from.packet_life_time_selector);
    set(to.packet_life_time, from.packet_life_time);
    set(to.preference, from.preference);
}

void copy_states(ibv_qp_attr& to, const ib_uverbs_qp_attr& from) noexcept {
    to.cur_qp_state = static_cast<ibv_qp_state>(from.cur_qp_state);
    to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
    to.path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
    to.qp_access_flags = from.qp_access_flags;
    to.cap = {from.max_send_wr, from.max_recv_wr, from.max_send_sge, from.max_recv_sge, from.max_inline_data};
    to.en_sqd_async_notify = from.en_sqd_async_notify;
    to.sq_draining = from.sq_draining;
}

}  // namespace

void ibv_copy_ah_attr_from_kern(ibv_ah_attr* to, ib_uverbs_ah_attr* from) {
    std::copy(std::begin(from->grh.dgid), std::end(from->grh.dgid), to->grh.dgid.raw);
    to->grh.flow_label = from->grh.flow_label;
    to->grh.sgid_index = from->grh.sgid_index;
    to->grh.hop_limit = from->grh.hop_limit;
    to->grh.traffic_class = from->grh.traffic_class;
    to->dlid = from->dlid;
    to->sl = from->sl;
    to->src_path_bits = from->src_path_bits;
    to->static_rate = from->static_rate;
    to->is_global = from->is_global;
    to->port_num = from->port_num;
}

// Does not write `qp_state`, which its caller sets.
void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from) {
    copy_states(*to, *from);
    to->qkey = from->qkey;
    to->rq_psn = from->rq_psn;
    to->sq_psn = from->sq_psn;
    to->dest_qp_num = from->dest_qp_num;
    ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
    ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
    to->pkey_index = from->pkey_index;
    to->alt_pkey_index = from->alt_pkey_index;
    to->max_rd_atomic = from->max_rd_atomic;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->min_rnr_timer = from->min_rnr_timer;
    to->port_num = from->port_num;
    to->timeout = from->timeout;
    to->retry_cnt = from->retry_cnt;
    to->rnr_retry = from->rnr_retry;
    to->alt_port_num = from->alt_port_num;
    to->alt_timeout = from->alt_timeout;
}

void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* to, ib_user_path_rec* from) {
    std::copy(std::begin(from->dgid), std::end(from->dgid), to->dgid.raw);
    std::copy(std::begin(from->sgid), std::end(from->sgid), to->sgid.raw);
    copy_path(*to, *from);
}

void ibv_copy_path_rec_to_kern(ib_user_path_rec* to, ibv_sa_path_rec* from) {
    std::copy(std::begin(from->dgid.raw), std::end(from->dgid.raw), to->dgid);
    std::copy(std::begin(from->sgid.raw), std::end(from->sgid.raw), to->sgid);
    copy_path(*to, *from);
}
