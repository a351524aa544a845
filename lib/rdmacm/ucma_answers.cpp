#include "lib/rdmacm/ucma_answers.hpp"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>

#include "lib/ibverbs/ah.hpp"
#include "lib/ibverbs/private_api.hpp"

namespace cairn::rdmacm::ucma {

namespace {

constexpr std::uint16_t kWholePartition = 0xffff;

// Writes the socket address into a field of `Field`. Returns its length.
template <class Field>
std::uint16_t put_end(const End& end, Field& out) noexcept {
    static_assert(sizeof(Field) >= sizeof(sockaddr_in6));
    sockaddr_storage address{};
    const socklen_t bytes = write_end(end, address);
    std::memcpy(&out, &address, bytes);
    return static_cast<std::uint16_t>(bytes);
}

template <class Field>
std::uint16_t put_gid(const End& end, Field& out) noexcept {
    sockaddr_ib address{};
    address.sib_family = AF_IB;
    address.sib_pkey = htons(kWholePartition);
    const ibv_gid gid = ibverbs::to_gid(end.address);
    std::memcpy(&address.sib_addr, &gid, sizeof(gid));
    std::memcpy(&out, &address, sizeof(address));
    return sizeof(address);
}

// Writes the device of an endpoint that is bound to one.
template <class Answer>
void put_device(const Endpoint& endpoint, Answer& out) noexcept {
    if (endpoint.device != nullptr) {
        ibv_device* const device = endpoint.device->verbs->device;
        out.node_guid = ibv_get_device_guid(device);
        out.ibdev_index = static_cast<std::uint32_t>(ibv_get_device_index(device));
        out.port_num = 1;
    }
}

// Answers both queries for addresses, which differ in `put`.
template <class Put>
[[nodiscard]] abi::rdma_ucm_query_addr_resp ends_answer(Endpoint& endpoint, const Put& put) {
    const Held held(endpoint);
    abi::rdma_ucm_query_addr_resp made{};
    put_device(endpoint, made);
    made.pkey = htons(kWholePartition);
    made.src_size = put(endpoint.local, made.src_addr);
    made.dst_size = has_peer(endpoint) ? put(endpoint.remote, made.dst_addr) : std::uint16_t{0};
    return made;
}

[[nodiscard]] ib_uverbs_ah_attr way_of(const ibv_ah_attr& from) noexcept {
    ib_uverbs_ah_attr to{};
    std::copy_n(from.grh.dgid.raw, sizeof(to.grh.dgid), to.grh.dgid);
    to.grh.flow_label = from.grh.flow_label;
    to.grh.sgid_index = from.grh.sgid_index;
    to.grh.hop_limit = from.grh.hop_limit;
    to.grh.traffic_class = from.grh.traffic_class;
    to.dlid = from.dlid;
    to.sl = from.sl;
    to.src_path_bits = from.src_path_bits;
    to.static_rate = from.static_rate;
    to.is_global = from.is_global;
    to.port_num = from.port_num;
    return to;
}

// Copies parameters of either kind: they have the same fields.
template <class From, class To>
void put_private_data(const From& from, To& to) noexcept {
    if (from.private_data != nullptr) {
        std::memcpy(to.private_data, from.private_data, from.private_data_len);
        to.private_data_len = from.private_data_len;
    }
}

// Copies parameters of either form, in either direction.
template <class From, class To>
void put_numbers(const From& from, To& to) noexcept {
    to.responder_resources = from.responder_resources;
    to.initiator_depth = from.initiator_depth;
    to.flow_control = from.flow_control;
    to.retry_count = from.retry_count;
    to.rnr_retry_count = from.rnr_retry_count;
    to.srq = from.srq;
    to.qp_num = from.qp_num;
}

}  // namespace

abi::rdma_ucm_query_route_resp route_answer(Endpoint& endpoint) {
    const Held held(endpoint);
    abi::rdma_ucm_query_route_resp made{};
    put_device(endpoint, made);
    put_end(endpoint.local, made.src_addr);
    if (has_peer(endpoint)) {
        put_end(endpoint.remote, made.dst_addr);
    }
    if (endpoint.device != nullptr) {
        ibv_sa_path_rec path = path_of(endpoint);
        ibv_copy_path_rec_to_kern(&made.ib_route[0], &path);
        made.num_paths = has_route(endpoint) ? 1 : 0;
    }
    return made;
}

abi::rdma_ucm_query_addr_resp address_answer(Endpoint& endpoint) {
    return ends_answer(endpoint, [](const End& end, auto& out) { return put_end(end, out); });
}

abi::rdma_ucm_query_addr_resp gid_answer(Endpoint& endpoint) {
    return ends_answer(endpoint, [](const End& end, auto& out) { return put_gid(end, out); });
}

PathAnswer path_answer(Endpoint& endpoint) {
    constexpr unsigned kExactly = 2U << 6U;
    const Held held(endpoint);
    PathAnswer made{};
    if (!has_route(endpoint)) {
        return made;
    }
    const ibv_sa_path_rec from = path_of(endpoint);
    ibv_path_record path{};
    path.dgid = from.dgid;
    path.sgid = from.sgid;
    path.flowlabel_hoplimit = htonl(from.hop_limit);
    path.tclass = from.traffic_class;
    path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1U;
    path.pkey = from.pkey;
    path.mtu = static_cast<std::uint8_t>(kExactly | from.mtu);
    path.rate = static_cast<std::uint8_t>(kExactly | from.rate);
    path.packetlifetime = static_cast<std::uint8_t>(kExactly | from.packet_life_time);
    made.num_paths = 1;
    made.path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    static_assert(sizeof(path) == sizeof(made.path.path_rec));
    std::memcpy(made.path.path_rec, &path, sizeof(path));
    return made;
}

ib_uverbs_qp_attr qp_answer(const ibv_qp_attr& attributes, int mask) noexcept {
    ib_uverbs_qp_attr made{};
    made.qp_attr_mask = static_cast<std::uint32_t>(mask);
    made.qp_state = attributes.qp_state;
    made.path_mtu = attributes.path_mtu;
    made.qkey = attributes.qkey;
    made.rq_psn = attributes.rq_psn;
    made.sq_psn = attributes.sq_psn;
    made.dest_qp_num = attributes.dest_qp_num;
    made.qp_access_flags = attributes.qp_access_flags;
    made.ah_attr = way_of(attributes.ah_attr);
    made.pkey_index = attributes.pkey_index;
    made.max_rd_atomic = attributes.max_rd_atomic;
    made.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
    made.min_rnr_timer = attributes.min_rnr_timer;
    made.port_num = attributes.port_num;
    made.timeout = attributes.timeout;
    made.retry_cnt = attributes.retry_cnt;
    made.rnr_retry = attributes.rnr_retry;
    return made;
}

abi::rdma_ucm_event_resp event_answer(const Event& event, bool is_datagrams) noexcept {
    abi::rdma_ucm_event_resp made{};
    made.event = event.event;
    made.status = static_cast<std::uint32_t>(event.status);
    if (is_datagrams) {
        const rdma_ud_param& from = event.param.ud;
        made.param.ud.qp_num = from.qp_num;
        made.param.ud.qkey = from.qkey;
        made.param.ud.ah_attr = way_of(from.ah_attr);
        if (event.group == nullptr) {  // else it is what the program gave
            put_private_data(from, made.param.ud);
        }
        return made;
    }
    put_private_data(event.param.conn, made.param.conn);
    put_numbers(event.param.conn, made.param.conn);
    return made;
}

rdma_conn_param to_parameters(const abi::rdma_ucm_conn_param& from) noexcept {
    constexpr std::uint32_t kLargestQpn = 0xffffff;
    rdma_conn_param made{};
    made.private_data = from.private_data;
    made.private_data_len = from.private_data_len;
    put_numbers(from, made);
    made.qp_num &= kLargestQpn;
    return made;
}

}  // namespace cairn::rdmacm::ucma
