// Declarations of this library's exports: verbs.h hides some of them by macros of the same name.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace cairn::ibverbs {

// The operations that programs call through a context, by the names of verbs.h.
int poll_cq(ibv_cq* cq, int most, ibv_wc* completions) noexcept;
int arm_cq(ibv_cq* cq, int solicited_only) noexcept;
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted) noexcept;
int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** refused) noexcept;
int post_receive(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** refused) noexcept;
int post_shared_receive(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** refused) noexcept;
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted) noexcept;
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* wanted) noexcept;
int get_srq_number(ibv_srq* srq, std::uint32_t* number) noexcept;
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* wanted) noexcept;
int close_xrcd(ibv_xrcd* xrcd) noexcept;
ibv_mw* allocate_window(ibv_pd* pd, ibv_mw_type type) noexcept;
int bind_window(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* wanted) noexcept;
int free_window(ibv_mw* mw) noexcept;
ibv_td* allocate_thread_domain(ibv_context* context, ibv_td_init_attr* wanted) noexcept;
int free_thread_domain(ibv_td* td) noexcept;
ibv_pd* allocate_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* wanted) noexcept;
ibv_mr* allocate_null_region(ibv_pd* pd) noexcept;
int advise(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces, std::uint32_t count) noexcept;
ibv_dm* allocate_device_memory(ibv_context* context, ibv_alloc_dm_attr* wanted) noexcept;
int free_device_memory(ibv_dm* dm) noexcept;
ibv_mr* register_device_memory(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t bytes,
                               unsigned access) noexcept;
int moderate_cq(ibv_cq* cq, ibv_modify_cq_attr* wanted) noexcept;
ibv_qp* open_shared_qp(ibv_context* context, ibv_qp_open_attr* wanted) noexcept;
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t bytes) noexcept;
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t bytes) noexcept;
int query_clock(ibv_context* context, ibv_values_ex* values) noexcept;

}  // namespace cairn::ibverbs
