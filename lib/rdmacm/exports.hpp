// The functions that libibverbs.so.1 exports for librdmacm.so.1, which gives them their public names.
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

extern "C" {

decltype(rdma_accept) cairn_rdma_accept;
decltype(rdma_ack_cm_event) cairn_rdma_ack_cm_event;
decltype(rdma_bind_addr) cairn_rdma_bind_addr;
decltype(rdma_connect) cairn_rdma_connect;
decltype(rdma_create_ep) cairn_rdma_create_ep;
decltype(rdma_create_event_channel) cairn_rdma_create_event_channel;
decltype(rdma_create_id) cairn_rdma_create_id;
decltype(rdma_create_qp) cairn_rdma_create_qp;
decltype(rdma_create_qp_ex) cairn_rdma_create_qp_ex;
decltype(rdma_create_srq) cairn_rdma_create_srq;
decltype(rdma_create_srq_ex) cairn_rdma_create_srq_ex;
decltype(rdma_destroy_ep) cairn_rdma_destroy_ep;
decltype(rdma_destroy_event_channel) cairn_rdma_destroy_event_channel;
decltype(rdma_destroy_id) cairn_rdma_destroy_id;
decltype(rdma_destroy_qp) cairn_rdma_destroy_qp;
decltype(rdma_destroy_srq) cairn_rdma_destroy_srq;
decltype(rdma_disconnect) cairn_rdma_disconnect;
decltype(rdma_establish) cairn_rdma_establish;
decltype(rdma_event_str) cairn_rdma_event_str;
decltype(rdma_free_devices) cairn_rdma_free_devices;
decltype(rdma_freeaddrinfo) cairn_rdma_freeaddrinfo;
decltype(rdma_get_cm_event) cairn_rdma_get_cm_event;
decltype(rdma_get_devices) cairn_rdma_get_devices;
decltype(rdma_get_dst_port) cairn_rdma_get_dst_port;
decltype(rdma_get_remote_ece) cairn_rdma_get_remote_ece;
decltype(rdma_get_request) cairn_rdma_get_request;
decltype(rdma_get_src_port) cairn_rdma_get_src_port;
decltype(rdma_getaddrinfo) cairn_rdma_getaddrinfo;
decltype(rdma_init_qp_attr) cairn_rdma_init_qp_attr;
decltype(rdma_join_multicast) cairn_rdma_join_multicast;
decltype(rdma_join_multicast_ex) cairn_rdma_join_multicast_ex;
decltype(rdma_leave_multicast) cairn_rdma_leave_multicast;
decltype(rdma_listen) cairn_rdma_listen;
decltype(rdma_migrate_id) cairn_rdma_migrate_id;
decltype(rdma_notify) cairn_rdma_notify;
decltype(rdma_reject) cairn_rdma_reject;
decltype(rdma_reject_ece) cairn_rdma_reject_ece;
decltype(rdma_resolve_addr) cairn_rdma_resolve_addr;
decltype(rdma_resolve_route) cairn_rdma_resolve_route;
decltype(rdma_set_local_ece) cairn_rdma_set_local_ece;
decltype(rdma_set_option) cairn_rdma_set_option;
}
