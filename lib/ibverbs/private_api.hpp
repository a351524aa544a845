// Private functions of libibverbs that other libraries of rdma-core call. No header declares them.
#pragma once

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>

extern "C" {

int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned int index, int* type);
int ibv_read_ibdev_sysfs_file(char* out, std::size_t room, ibv_device* device, const char* format, ...);
const char* ibv_get_sysfs_path(void);
const char* ibv_wr_opcode_str(ibv_wr_opcode opcode);  // of rdma-core 56
int ibv_read_sysfs_file(const char* folder, const char* file, char* out, std::size_t room);
void ibv_copy_ah_attr_from_kern(ibv_ah_attr* to, ib_uverbs_ah_attr* from);
void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from);
void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* to, ib_user_path_rec* from);
void ibv_copy_path_rec_to_kern(ib_user_path_rec* to, ibv_sa_path_rec* from);
}
