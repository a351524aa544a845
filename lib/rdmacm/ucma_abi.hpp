// The structures of the interface between programs and a kernel's rdma_cm, from the installed header. Some have names
// of rdma_cma.h, too, so they stand in a namespace of their own. The headers that it includes do not.
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
