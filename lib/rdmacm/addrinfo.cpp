// rdma_getaddrinfo(): getaddrinfo() with structures of its own.
#include <netdb.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "lib/ibverbs/device.hpp"
#include "lib/rdmacm/exports.hpp"
#include "lib/rdmacm/id.hpp"

namespace cairn::rdmacm {

namespace {

[[nodiscard]] int socket_type_of(int qp_type) noexcept {
    switch (qp_type) {
        case IBV_QPT_RC:
        case IBV_QPT_UC:
        case IBV_QPT_XRC_SEND:
        case IBV_QPT_XRC_RECV:
            return SOCK_STREAM;
        case IBV_QPT_UD:
            return SOCK_DGRAM;
        default:
            return 0;
    }
}

[[nodiscard]] int protocol_of(int space, int socket_type) noexcept {
    switch (space) {
        case RDMA_PS_TCP:
            return IPPROTO_TCP;
        case RDMA_PS_IPOIB:
        case RDMA_PS_UDP:
            return IPPROTO_UDP;
        case RDMA_PS_IB:
            return socket_type == SOCK_STREAM ? IPPROTO_TCP : socket_type == SOCK_DGRAM ? IPPROTO_UDP : 0;
        default:
            return 0;
    }
}

[[nodiscard]] addrinfo hints_of(const rdma_addrinfo& from) noexcept {
    addrinfo hints{};
    hints.ai_flags = ((from.ai_flags & RAI_PASSIVE) != 0 ? AI_PASSIVE : 0) |
                     ((from.ai_flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
    hints.ai_family = from.ai_family;
    hints.ai_socktype = socket_type_of(from.ai_qp_type);
    hints.ai_protocol = protocol_of(from.ai_port_space, hints.ai_socktype);
    return hints;
}

// Copies the address to memory of malloc(), as rdma_freeaddrinfo() frees it. Returns false if there is no memory.
[[nodiscard]] bool copy(const sockaddr* from, socklen_t bytes, sockaddr*& to, socklen_t& to_bytes) noexcept {
    to = static_cast<sockaddr*>(std::malloc(bytes));
    if (to == nullptr) {
        return false;
    }
    std::memcpy(to, from, bytes);
    to_bytes = bytes;
    return true;
}

[[nodiscard]] bool copy(const char* from, char*& to) noexcept {
    to = from == nullptr ? nullptr : strdup(from);
    return from == nullptr || to != nullptr;
}

[[nodiscard]] bool write(const addrinfo& from, const rdma_addrinfo* hints, rdma_addrinfo& to) noexcept {
    to.ai_family = from.ai_family;
    to.ai_qp_type = hints != nullptr && hints->ai_qp_type != 0 ? hints->ai_qp_type
                    : from.ai_socktype == SOCK_STREAM          ? IBV_QPT_RC
                    : from.ai_socktype == SOCK_DGRAM           ? IBV_QPT_UD
                                                               : 0;
    to.ai_port_space = hints != nullptr && hints->ai_port_space != 0 ? hints->ai_port_space
                       : from.ai_protocol == IPPROTO_TCP             ? RDMA_PS_TCP
                       : from.ai_protocol == IPPROTO_UDP             ? RDMA_PS_UDP
                                                                     : 0;
    if ((from.ai_flags & AI_PASSIVE) != 0) {
        to.ai_flags = RAI_PASSIVE;
        return copy(from.ai_canonname, to.ai_src_canonname) &&
               copy(from.ai_addr, from.ai_addrlen, to.ai_src_addr, to.ai_src_len);
    }
    return copy(from.ai_canonname, to.ai_dst_canonname) &&
           copy(from.ai_addr, from.ai_addrlen, to.ai_dst_addr, to.ai_dst_len);
}

// Returns 0, or the error of getaddrinfo(); -1, with errno.
[[nodiscard]] int look_up(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo& to) {
    const addrinfo asked = hints != nullptr ? hints_of(*hints) : addrinfo{};
    addrinfo* found = nullptr;
    const int refused = getaddrinfo(node, service, hints != nullptr ? &asked : nullptr, &found);
    if (refused != 0) {
        return refused;
    }
    const bool written = write(*found, hints, to);
    freeaddrinfo(found);
    return written ? 0 : result_of(ENOMEM);
}

[[nodiscard]] int repeat(const rdma_addrinfo& hints, rdma_addrinfo& to) noexcept {
    to.ai_flags = hints.ai_flags;
    to.ai_family = hints.ai_family;
    to.ai_qp_type = hints.ai_qp_type;
    to.ai_port_space = hints.ai_port_space;
    const bool copied =
        hints.ai_dst_len == 0 || copy(hints.ai_dst_addr, hints.ai_dst_len, to.ai_dst_addr, to.ai_dst_len);
    return copied ? 0 : result_of(ENOMEM);
}

}  // namespace

}  // namespace cairn::rdmacm

using namespace cairn::rdmacm;

int cairn_rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** out) {
    if (service == nullptr && node == nullptr && hints == nullptr) {
        return result_of(EINVAL);
    }
    if (cairn::ibverbs::all_devices().empty()) {
        return result_of(ENODEV);
    }
    auto* const made = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
    if (made == nullptr) {
        return result_of(ENOMEM);
    }
    int refused = node != nullptr || service != nullptr ? look_up(node, service, hints, *made) : repeat(*hints, *made);
    if (refused == 0 && made->ai_src_len == 0 && hints != nullptr && hints->ai_src_len != 0 &&
        !copy(hints->ai_src_addr, hints->ai_src_len, made->ai_src_addr, made->ai_src_len)) {
        refused = result_of(ENOMEM);
    }
    if (refused != 0) {
        cairn_rdma_freeaddrinfo(made);
        return refused;
    }
    *out = made;
    return 0;
}

void cairn_rdma_freeaddrinfo(rdma_addrinfo* list) {
    while (list != nullptr) {
        rdma_addrinfo* const ended = list;
        list = list->ai_next;
        std::free(ended->ai_connect);
        std::free(ended->ai_route);
        std::free(ended->ai_src_canonname);
        std::free(ended->ai_dst_canonname);
        std::free(ended->ai_src_addr);
        std::free(ended->ai_dst_addr);
        std::free(ended);
    }
}
