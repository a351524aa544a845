// Commands that programs write to a kernel's rdma_cm: each command, each truncation, and invalid ones.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "lib/rdmacm/ucma_command.hpp"
#include "tests/unit/rdmacm/ucma_command_bytes.hpp"

namespace cairn::rdmacm::ucma {
namespace {

constexpr std::uint64_t kAnswer = 0x1000;  // no test writes there
constexpr std::uint16_t kPort = 7471;

[[nodiscard]] sockaddr_in v4_end() {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(kPort);
    made.sin_addr.s_addr = htonl(0x0a000001);
    return made;
}

// A valid command: the shortest bytes for it, and the least room that its answer needs (0: it has none).
struct Sound {
    std::uint32_t command;
    std::vector<std::uint8_t> raw;
    std::size_t shortest;
    std::size_t least_room;
    std::size_t place_of_answer;  // in `raw`, the offset of its address
    std::size_t index;            // of the alternative

    [[nodiscard]] std::vector<std::uint8_t> bytes(std::size_t length, std::size_t room) const {
        std::vector<std::uint8_t> copy = raw;
        copy.resize(sizeof(abi::rdma_ucm_event_resp));  // longer than every command
        std::vector<std::uint8_t> made = written(command, copy[0], room, 0);
        const auto in = static_cast<std::uint16_t>(length);
        std::memcpy(made.data() + offsetof(abi::rdma_ucm_cmd_hdr, in), &in, sizeof(in));
        made.insert(made.end(), raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(length));
        return made;
    }
};

template <class Raw>
[[nodiscard]] std::vector<std::uint8_t> raw_of(const Raw& raw) {
    std::vector<std::uint8_t> made(sizeof(raw));
    std::memcpy(made.data(), &raw, sizeof(raw));
    return made;
}

template <class Kind>
[[nodiscard]] std::size_t index_of(const Kind& kind) {
    return Command(kind).index();
}

template <class Raw, class Kind>
[[nodiscard]] Sound sound(std::uint32_t command, Raw raw, const Kind& kind, std::size_t shortest = sizeof(Raw)) {
    return {command, raw_of(raw), shortest, 0, 0, index_of(kind)};
}

template <class Raw, class Kind>
[[nodiscard]] Sound answered(std::uint32_t command, Raw raw, std::size_t room, const Kind& kind,
                             std::size_t shortest = sizeof(Raw)) {
    raw.response = kAnswer;
    return {command, raw_of(raw), shortest, room, offsetof(Raw, response), index_of(kind)};
}

[[nodiscard]] std::vector<Sound> all_sound() {
    const sockaddr_in end = v4_end();
    abi::rdma_ucm_create_id create{};
    create.ps = abi::RDMA_PS_TCP;
    abi::rdma_ucm_bind_ip bind_ip{};
    std::memcpy(&bind_ip.addr, &end, sizeof(end));
    abi::rdma_ucm_bind bind{};
    bind.addr_size = sizeof(end);
    std::memcpy(&bind.addr, &end, sizeof(end));
    abi::rdma_ucm_resolve_ip resolve_ip{};
    std::memcpy(&resolve_ip.dst_addr, &end, sizeof(end));
    abi::rdma_ucm_resolve_addr resolve{};
    resolve.dst_size = sizeof(end);
    std::memcpy(&resolve.dst_addr, &end, sizeof(end));
    abi::rdma_ucm_connect connect{};
    connect.conn_param.valid = 1;
    abi::rdma_ucm_join_ip_mcast join_ip{};
    std::memcpy(&join_ip.addr, &end, sizeof(end));
    abi::rdma_ucm_join_mcast join{};
    join.addr_size = sizeof(end);
    std::memcpy(&join.addr, &end, sizeof(end));
    abi::rdma_ucm_query of_path{};
    of_path.option = abi::RDMA_USER_CM_QUERY_PATH;
    abi::rdma_ucm_query of_gid{};
    of_gid.option = abi::RDMA_USER_CM_QUERY_GID;
    constexpr std::size_t kEnds = offsetof(abi::rdma_ucm_query_addr_resp, ibdev_index);
    return {
        answered(abi::RDMA_USER_CM_CMD_CREATE_ID, create, 4, CreateId{}),
        answered(abi::RDMA_USER_CM_CMD_DESTROY_ID, abi::rdma_ucm_destroy_id{}, 4, DestroyId{}),
        sound(abi::RDMA_USER_CM_CMD_BIND_IP, bind_ip, Bind{}),
        sound(abi::RDMA_USER_CM_CMD_BIND, bind, Bind{}),
        sound(abi::RDMA_USER_CM_CMD_RESOLVE_IP, resolve_ip, ResolveAddress{}),
        sound(abi::RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve, ResolveAddress{}),
        sound(abi::RDMA_USER_CM_CMD_RESOLVE_ROUTE, abi::rdma_ucm_resolve_route{}, ResolveRoute{}),
        answered(abi::RDMA_USER_CM_CMD_QUERY_ROUTE, abi::rdma_ucm_query{},
                 offsetof(abi::rdma_ucm_query_route_resp, ibdev_index), Query{}, offsetof(abi::rdma_ucm_query, option)),
        answered(abi::RDMA_USER_CM_CMD_QUERY, abi::rdma_ucm_query{}, kEnds, Query{}),
        answered(abi::RDMA_USER_CM_CMD_QUERY, of_gid, kEnds, Query{}),
        answered(abi::RDMA_USER_CM_CMD_QUERY, of_path, 8, Query{}),
        sound(abi::RDMA_USER_CM_CMD_CONNECT, connect, Connect{}, offsetof(abi::rdma_ucm_connect, ece)),
        sound(abi::RDMA_USER_CM_CMD_LISTEN, abi::rdma_ucm_listen{}, Listen{}),
        sound(abi::RDMA_USER_CM_CMD_ACCEPT, abi::rdma_ucm_accept{}, Accept{}, offsetof(abi::rdma_ucm_accept, ece)),
        sound(abi::RDMA_USER_CM_CMD_REJECT, abi::rdma_ucm_reject{}, Reject{}),
        sound(abi::RDMA_USER_CM_CMD_DISCONNECT, abi::rdma_ucm_disconnect{}, Disconnect{}),
        answered(abi::RDMA_USER_CM_CMD_INIT_QP_ATTR, abi::rdma_ucm_init_qp_attr{}, sizeof(ib_uverbs_qp_attr), InitQp{}),
        answered(abi::RDMA_USER_CM_CMD_GET_EVENT, abi::rdma_ucm_get_event{},
                 offsetof(abi::rdma_ucm_event_resp, reserved), GetEvent{}),
        sound(abi::RDMA_USER_CM_CMD_SET_OPTION, abi::rdma_ucm_set_option{}, SetOption{}),
        sound(abi::RDMA_USER_CM_CMD_NOTIFY, abi::rdma_ucm_notify{}, Notify{}),
        answered(abi::RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_ip, 4, Join{}),
        answered(abi::RDMA_USER_CM_CMD_JOIN_MCAST, join, 4, Join{}),
        answered(abi::RDMA_USER_CM_CMD_LEAVE_MCAST, abi::rdma_ucm_destroy_id{}, 4, Leave{}),
        answered(abi::RDMA_USER_CM_CMD_MIGRATE_ID, abi::rdma_ucm_migrate_id{}, 4, Migrate{}),
    };
}

[[nodiscard]] int refusal_of(const Parsed& parsed) {
    const int* const refused = std::get_if<int>(&parsed);
    return refused == nullptr ? 0 : *refused;
}

template <class Kind>
[[nodiscard]] const Kind& as(const Parsed& parsed) {
    return std::get<Kind>(std::get<Command>(parsed));
}

TEST(RdmacmUcmaCommandTest, EachCommandIsOneAndIsRefusedWhenItIsCutOff) {
    for (const Sound& each : all_sound()) {
        SCOPED_TRACE(each.command);
        for (std::size_t length = 0; length <= each.raw.size(); ++length) {
            const Parsed parsed = parse_command(each.bytes(length, each.least_room));
            ASSERT_EQ(refusal_of(parsed), length < each.shortest ? EINVAL : 0) << length;
        }
        const Parsed parsed = parse_command(each.bytes(each.raw.size(), each.least_room));
        EXPECT_EQ(std::get<Command>(parsed).index(), each.index);
    }
}

TEST(RdmacmUcmaCommandTest, AnAnswerHasRoomAndAPlace) {
    for (const Sound& each : all_sound()) {
        if (each.least_room == 0) {
            continue;
        }
        SCOPED_TRACE(each.command);
        EXPECT_EQ(refusal_of(parse_command(each.bytes(each.raw.size(), each.least_room - 1))), ENOSPC);
        std::vector<std::uint8_t> nowhere = each.bytes(each.raw.size(), each.least_room);
        std::memset(nowhere.data() + sizeof(abi::rdma_ucm_cmd_hdr) + each.place_of_answer, 0, sizeof(std::uint64_t));
        EXPECT_EQ(refusal_of(parse_command(nowhere)), EFAULT);
    }
}

TEST(RdmacmUcmaCommandTest, AHeaderThatSaysMoreThanThereIsMeansNothing) {
    abi::rdma_ucm_disconnect raw{};
    std::vector<std::uint8_t> bytes = written(abi::RDMA_USER_CM_CMD_DISCONNECT, raw);
    bytes.pop_back();
    EXPECT_EQ(refusal_of(parse_command(bytes)), EINVAL);
    for (std::size_t length = 0; length < sizeof(abi::rdma_ucm_cmd_hdr); ++length) {
        EXPECT_EQ(refusal_of(parse_command(std::span(bytes).first(length))), EINVAL);
    }
}

TEST(RdmacmUcmaCommandTest, AnUnknownCommandMeansNothingAndOneOfNoKernelIsNotThere) {
    const std::array<std::uint8_t, 256> raw{};
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_GET_OPTION, raw))), ENOSYS);
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_JOIN_MCAST + 1, raw))), EINVAL);
    EXPECT_EQ(refusal_of(parse_command(written(~0U, raw))), EINVAL);
}

TEST(RdmacmUcmaCommandTest, APortSpaceHasItsQueuePairs) {
    const auto type = [](std::uint16_t space, std::uint8_t wanted) {
        abi::rdma_ucm_create_id raw{};
        raw.response = kAnswer;
        raw.ps = space;
        raw.qp_type = wanted;
        const Parsed parsed = parse_command(written(abi::RDMA_USER_CM_CMD_CREATE_ID, raw, 4));
        return refusal_of(parsed) != 0 ? -refusal_of(parsed) : static_cast<int>(as<CreateId>(parsed).type);
    };
    EXPECT_EQ(type(abi::RDMA_PS_TCP, IBV_QPT_UD), IBV_QPT_RC);
    EXPECT_EQ(type(abi::RDMA_PS_UDP, IBV_QPT_RC), IBV_QPT_UD);
    EXPECT_EQ(type(abi::RDMA_PS_IPOIB, IBV_QPT_RC), IBV_QPT_UD);
    EXPECT_EQ(type(abi::RDMA_PS_IB, IBV_QPT_UC), IBV_QPT_UC);
    EXPECT_EQ(type(1, IBV_QPT_RC), -EINVAL);
}

TEST(RdmacmUcmaCommandTest, AddressesAreReadInBothForms) {
    const sockaddr_in end = v4_end();
    abi::rdma_ucm_resolve_ip of_ip{};
    of_ip.id = 5;
    std::memcpy(&of_ip.dst_addr, &end, sizeof(end));
    const Parsed short_form = parse_command(written(abi::RDMA_USER_CM_CMD_RESOLVE_IP, of_ip));
    EXPECT_EQ(as<ResolveAddress>(short_form).id, 5U);
    EXPECT_EQ(as<ResolveAddress>(short_form).remote.port, kPort);
    EXPECT_EQ(as<ResolveAddress>(short_form).local, std::nullopt);

    abi::rdma_ucm_resolve_addr sized{};
    sized.src_size = sizeof(end);
    sized.dst_size = sizeof(end);
    std::memcpy(&sized.src_addr, &end, sizeof(end));
    std::memcpy(&sized.dst_addr, &end, sizeof(end));
    const auto parse = [&sized] { return parse_command(written(abi::RDMA_USER_CM_CMD_RESOLVE_ADDR, sized)); };
    EXPECT_EQ(as<ResolveAddress>(parse()).local, as<ResolveAddress>(parse()).remote);
    sized.src_size = sizeof(end) - 1;
    EXPECT_EQ(refusal_of(parse()), EINVAL);
    sized.src_size = 0;
    sized.dst_size = sizeof(sized.dst_addr) + 1;
    EXPECT_EQ(refusal_of(parse()), EINVAL);
    sized.dst_size = 0;
    EXPECT_EQ(refusal_of(parse()), EINVAL);
}

TEST(RdmacmUcmaCommandTest, AnAddressOfAnotherFamilyIsRefused) {
    abi::rdma_ucm_bind_ip raw{};
    for (const int family : {AF_UNSPEC, AF_UNIX, 27 /* AF_IB, by which librdmacm asks what a kernel can do */}) {
        raw.addr.sin6_family = static_cast<sa_family_t>(family);
        EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_BIND_IP, raw))), EINVAL);
    }
}

TEST(RdmacmUcmaCommandTest, AnOptionIsSomewhereAndNotTooLong) {
    abi::rdma_ucm_set_option raw{};
    raw.optlen = 4;
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_SET_OPTION, raw))), EFAULT);
    raw.optval = kAnswer;
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_SET_OPTION, raw))), 0);
    raw.optlen = 4097;
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_SET_OPTION, raw))), EINVAL);
}

TEST(RdmacmUcmaCommandTest, WhoConnectsSaysHow) {
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_CONNECT, abi::rdma_ucm_connect{}))), EINVAL);
    abi::rdma_ucm_init_qp_attr raw{};
    raw.response = kAnswer;
    raw.qp_state = IBV_QPS_ERR + 1;
    EXPECT_EQ(refusal_of(parse_command(written(abi::RDMA_USER_CM_CMD_INIT_QP_ATTR, raw, 1024))), EINVAL);
}

}  // namespace
}  // namespace cairn::rdmacm::ucma
