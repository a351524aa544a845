// The structures by which programs and a kernel's rdma_cm speak, from the installed header. It has names of rdma_cma.h,
// too, and stands in a namespace of its own; what it includes does not.
#pragma once

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

namespace cairn::rdmacm::ucma::abi {
#include <rdma/rdma_user_cm.h>
}  // namespace cairn::rdmacm::ucma::abi
