// Private functions of libibverbs that other libraries of rdma-core call. No header declares them.
#pragma once

#include <infiniband/verbs.h>

extern "C" {

int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned int index, int* type);
int ibv_read_ibdev_sysfs_file(char* out, std::size_t room, ibv_device* device, const char* format, ...);
const char* ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char* folder, const char* file, char* out, std::size_t room);
}
