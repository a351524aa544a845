// A kernel's rdma_cm in this process: files, ids, groups, and a program's events. No device is needed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lib/rdmacm/ucma.hpp"
#include "tests/unit/rdmacm/ucma_command_bytes.hpp"

namespace cairn::rdmacm::ucma {
namespace {

constexpr std::uint64_t kUid = 77;

class RdmacmUcmaTest : public testing::Test {
protected:
    ~RdmacmUcmaTest() override {
        for (const int fd : opened_) {
            table().close(fd);
        }
    }

    [[nodiscard]] std::shared_ptr<File> open() {
        opened_.push_back(table().open());
        return table().find(opened_.back());
    }

    template <class Raw>
    [[nodiscard]] static int write_to(const std::shared_ptr<File>& file, std::uint32_t command, const Raw& raw,
                                      std::size_t room_bytes = 0) {
        return perform(file, written(command, raw, room_bytes));
    }

    [[nodiscard]] static std::uint32_t create(const std::shared_ptr<File>& file, std::uint64_t uid = kUid) {
        abi::rdma_ucm_create_id_resp made{};
        abi::rdma_ucm_create_id raw{};
        raw.ps = abi::RDMA_PS_TCP;
        raw.uid = uid;
        raw.response = address_of(&made);
        EXPECT_EQ(write_to(file, abi::RDMA_USER_CM_CMD_CREATE_ID, raw, sizeof(made)), 0);
        return made.id;
    }

    // Returns how many events were reported, or -1 if the call is refused.
    [[nodiscard]] static int destroy(const std::shared_ptr<File>& file, std::uint32_t id) {
        abi::rdma_ucm_destroy_id_resp ended{};
        abi::rdma_ucm_destroy_id raw{};
        raw.id = id;
        raw.response = address_of(&ended);
        const int refused = write_to(file, abi::RDMA_USER_CM_CMD_DESTROY_ID, raw, sizeof(ended));
        return refused == 0 ? static_cast<int>(ended.events_reported) : -1;
    }

    [[nodiscard]] static int migrate(const std::shared_ptr<File>& from, const std::shared_ptr<File>& to,
                                     std::uint32_t id) {
        abi::rdma_ucm_migrate_resp moved{};
        abi::rdma_ucm_migrate_id raw{};
        raw.id = id;
        raw.fd = static_cast<std::uint32_t>(from->channel.count.fd);
        raw.response = address_of(&moved);
        const int refused = write_to(to, abi::RDMA_USER_CM_CMD_MIGRATE_ID, raw, sizeof(moved));
        return refused == 0 ? static_cast<int>(moved.events_reported) : -1;
    }

    [[nodiscard]] static Endpoint& endpoint(const std::shared_ptr<File>& file, std::uint32_t id) {
        return *table().find(*file, id)->endpoint;
    }

    static void say(Endpoint& to, rdma_cm_event_type what) { tell(std::make_unique<Event>(to, what, 0)); }

    // Reports a request to a listener.
    static void ask(Endpoint& listener) {
        auto event = std::make_unique<Event>(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
        event->asked = OwnedEndpoint(new Endpoint(RDMA_PS_TCP, IBV_QPT_RC, *listener.channel));
        tell(std::move(event));
    }

    // Returns the next event, or nullopt if reading it would wait.
    [[nodiscard]] static std::optional<abi::rdma_ucm_event_resp> next(const std::shared_ptr<File>& file) {
        pollfd waits{file->channel.count.fd, POLLIN, 0};
        if (poll(&waits, 1, 0) == 0) {
            return std::nullopt;
        }
        abi::rdma_ucm_event_resp told{};
        abi::rdma_ucm_get_event raw{};
        raw.response = address_of(&told);
        return write_to(file, abi::RDMA_USER_CM_CMD_GET_EVENT, raw, sizeof(told)) == 0 ? std::optional(told)
                                                                                       : std::nullopt;
    }

    std::vector<int> opened_;
};

TEST_F(RdmacmUcmaTest, AnIdIsOfTheFileThatMadeIt) {
    const auto file = open();
    const auto other = open();
    const std::uint32_t id = create(file);
    EXPECT_EQ(destroy(other, id), -1);
    EXPECT_EQ(write_to(other, abi::RDMA_USER_CM_CMD_RESOLVE_ROUTE, abi::rdma_ucm_resolve_route{id, 0}), EINVAL);
    EXPECT_EQ(destroy(file, id), 0);
    EXPECT_EQ(destroy(file, id), -1);
}

TEST_F(RdmacmUcmaTest, NamesAreTheLowestThatAreFree) {
    const auto file = open();
    const std::uint32_t first = create(file);
    const std::uint32_t second = create(file);
    EXPECT_EQ(second, first + 1);
    EXPECT_EQ(destroy(file, first), 0);
    EXPECT_EQ(create(file), first);
}

TEST_F(RdmacmUcmaTest, AnEventSaysWhoseItIsAndIsCounted) {
    const auto file = open();
    const std::uint32_t id = create(file);
    EXPECT_FALSE(next(file));
    say(endpoint(file, id), RDMA_CM_EVENT_ADDR_RESOLVED);
    say(endpoint(file, id), RDMA_CM_EVENT_ROUTE_RESOLVED);
    const auto told = next(file);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->event, std::uint32_t{RDMA_CM_EVENT_ADDR_RESOLVED});
    EXPECT_EQ(told->uid, kUid);
    EXPECT_EQ(told->id, id);
    EXPECT_EQ(destroy(file, id), 1);  // the other one was never reported
    EXPECT_FALSE(next(file));
}

TEST_F(RdmacmUcmaTest, AJoinOfAGroupThatWasLeftIsNotTold) {
    const auto file = open();
    const std::uint32_t id = create(file);
    Group joined{&endpoint(file, id), End{}, false, reinterpret_cast<void*>(std::uintptr_t{1234})};
    auto event = std::make_unique<Event>(endpoint(file, id), RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    event->group = &joined;
    tell(std::move(event));
    say(endpoint(file, id), RDMA_CM_EVENT_ADDR_RESOLVED);
    const auto told = next(file);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->event, std::uint32_t{RDMA_CM_EVENT_ADDR_RESOLVED});
}

TEST_F(RdmacmUcmaTest, AnEventSaysWhatTheEndpointWasTold) {
    const auto file = open();
    const std::uint32_t id = create(file);
    auto event = std::make_unique<Event>(endpoint(file, id), RDMA_CM_EVENT_REJECTED, 28);
    event->param.conn.qp_num = 0x123456;
    event->param.conn.responder_resources = 3;
    event->param.conn.initiator_depth = 4;
    const std::array<std::uint8_t, 3> data{7, 8, 9};
    event->set_private_data(data);
    tell(std::move(event));
    const auto told = next(file);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->event, std::uint32_t{RDMA_CM_EVENT_REJECTED});
    EXPECT_EQ(told->status, 28U);
    EXPECT_EQ(told->param.conn.qp_num, 0x123456U);
    EXPECT_EQ(told->param.conn.responder_resources, 3);
    EXPECT_EQ(told->param.conn.initiator_depth, 4);
    EXPECT_EQ(told->param.conn.private_data_len, data.size());
    EXPECT_EQ(told->param.conn.private_data[2], 9);
}

TEST_F(RdmacmUcmaTest, ARequestIsCountedForItsListenerAndHasAnIdOfItsOwn) {
    const auto file = open();
    const std::uint32_t listener = create(file);
    ask(endpoint(file, listener));
    const auto told = next(file);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->uid, kUid);  // the listener's
    EXPECT_NE(told->id, listener);
    EXPECT_EQ(destroy(file, listener), 1);
    EXPECT_EQ(destroy(file, told->id), 0);
}

TEST_F(RdmacmUcmaTest, OfWhatIsNotAcceptedNothingIsTold) {
    const auto file = open();
    const std::uint32_t listener = create(file);
    ask(endpoint(file, listener));
    const std::uint32_t asked = next(file)->id;
    say(endpoint(file, asked), RDMA_CM_EVENT_REJECTED);
    say(endpoint(file, listener), RDMA_CM_EVENT_ADDR_CHANGE);  // so that reading does not wait
    const auto told = next(file);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->event, std::uint32_t{RDMA_CM_EVENT_ADDR_CHANGE});
    EXPECT_EQ(destroy(file, asked), 0);
}

TEST_F(RdmacmUcmaTest, AnAcceptThatIsRefusedNamesNothing) {
    const auto file = open();
    const std::uint32_t listener = create(file);
    ask(endpoint(file, listener));
    const std::uint32_t asked = next(file)->id;
    abi::rdma_ucm_accept raw{};
    raw.id = asked;
    raw.uid = kUid + 1;
    raw.conn_param.valid = 1;
    EXPECT_EQ(write_to(file, abi::RDMA_USER_CM_CMD_ACCEPT, raw), EINVAL);  // there is no such id
    EXPECT_EQ(table().rename(*table().find(*file, asked), 0), 0U);
}

TEST_F(RdmacmUcmaTest, AnIdGoesToAnotherFileWithWhatItWasNotTold) {
    const auto file = open();
    const auto other = open();
    const std::uint32_t id = create(file);
    say(endpoint(file, id), RDMA_CM_EVENT_ADDR_RESOLVED);
    say(endpoint(file, id), RDMA_CM_EVENT_ROUTE_RESOLVED);
    ASSERT_TRUE(next(file));
    EXPECT_EQ(migrate(other, other, id), -1);
    EXPECT_EQ(migrate(file, other, id), 1);
    EXPECT_FALSE(next(file));
    const auto told = next(other);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->event, std::uint32_t{RDMA_CM_EVENT_ROUTE_RESOLVED});
    EXPECT_EQ(destroy(file, id), -1);
    EXPECT_EQ(destroy(other, id), 2);
}

TEST_F(RdmacmUcmaTest, WhoAsksAListenerGoesWithIt) {
    const auto file = open();
    const auto other = open();
    const std::uint32_t listener = create(file);
    ask(endpoint(file, listener));
    EXPECT_EQ(migrate(file, other, listener), 0);
    const auto told = next(other);
    ASSERT_TRUE(told);
    EXPECT_EQ(endpoint(other, told->id).channel, &other->channel);
}

TEST_F(RdmacmUcmaTest, AFileThatIsClosedTakesItsIdsWithIt) {
    const auto file = open();
    const std::uint32_t id = create(file);
    ask(endpoint(file, id));
    const int fd = file->channel.count.fd;
    EXPECT_TRUE(table().close(fd));
    EXPECT_FALSE(table().close(fd));
    EXPECT_EQ(table().find(fd), nullptr);
    EXPECT_EQ(table().find(*file, id), nullptr);
}

TEST_F(RdmacmUcmaTest, ReadingDoesNotWaitWhereTheProgramSaidSo) {
    const auto file = open();
    ASSERT_EQ(fcntl(file->channel.count.fd, F_SETFL, O_NONBLOCK), 0);
    abi::rdma_ucm_event_resp told{};
    abi::rdma_ucm_get_event raw{};
    raw.response = address_of(&told);
    EXPECT_EQ(write_to(file, abi::RDMA_USER_CM_CMD_GET_EVENT, raw, sizeof(told)), EAGAIN);
}

TEST_F(RdmacmUcmaTest, AnAnswerIsAsLongAsThereIsRoom) {
    const auto file = open();
    const std::uint32_t id = create(file);
    abi::rdma_ucm_query_route_resp answer{};
    answer.ibdev_index = 0xabcd;
    abi::rdma_ucm_query raw{};
    raw.id = id;
    raw.response = address_of(&answer);
    const std::size_t old = offsetof(abi::rdma_ucm_query_route_resp, ibdev_index);
    EXPECT_EQ(write_to(file, abi::RDMA_USER_CM_CMD_QUERY_ROUTE, raw, old), 0);
    EXPECT_EQ(answer.ibdev_index, 0xabcdU);
    EXPECT_EQ(write_to(file, abi::RDMA_USER_CM_CMD_QUERY_ROUTE, raw, sizeof(answer)), 0);
    EXPECT_EQ(answer.ibdev_index, 0U);
}

}  // namespace
}  // namespace cairn::rdmacm::ucma
