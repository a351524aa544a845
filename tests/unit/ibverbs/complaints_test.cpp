// The lines that programs get on stderr. Each test runs in a process of its own, where no line was printed yet.
#include "lib/ibverbs/complaints.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class ComplaintsTest : public VerbsTest {
protected:
    // Expects that a new process prints `lines` during `work`.
    static void expect_said(const std::function<void()>& work, const std::string& lines) {
        testing::GTEST_FLAG(death_test_style) = "threadsafe";
        EXPECT_EXIT(
            {
                work();
                _exit(testing::Test::HasFailure() ? 1 : 0);
            },
            testing::ExitedWithCode(0), testing::Eq(lines));
    }
    static std::string line(const std::string& text) { return "libibverbs (cairn): " + text + "\n"; }

    [[nodiscard]] ibv_qp* make(const ibv_qp_cap& cap) const {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = cq;
        wanted.cap = cap;
        wanted.qp_type = IBV_QPT_RC;
        return ibv_create_qp(pd, &wanted);
    }
    // Posts a request of two pieces, of which only the lengths matter.
    static int post(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t first, std::uint32_t second) {
        std::array<ibv_sge, 2> pieces{{{0, first, 0}, {0, second, 0}}};
        ibv_send_wr request{};
        request.sg_list = pieces.data();
        request.num_sge = pieces.size();
        request.opcode = opcode;
        ibv_send_wr* refused = nullptr;
        return ibv_post_send(qp, &request, &refused);
    }
};

TEST_F(ComplaintsTest, ALineIsToldOnceAndThereAreNotManyOfThem) {
    const auto work = [] {
        for (std::size_t i = 0; i < 2 * kMostLines; ++i) {
            errno = EMFILE;
            complain(Speaker::Cm, "this is told");
            complain(Speaker::Verbs, Error{"as is number " + std::to_string(i), "count them"});
            EXPECT_EQ(errno, EMFILE);
        }
    };
    std::string lines = "librdmacm (cairn): this is told\n";
    for (std::size_t i = 0; i + 1 < kMostLines; ++i) {
        lines += line("as is number " + std::to_string(i) + "; count them");
    }
    expect_said(work, lines);
}

TEST_F(ComplaintsTest, AChildDoesNotSayAgainWhatItsParentSaid) {
    const auto work = [] {
        complain_of_memory();
        const pid_t child = fork();
        if (child == 0) {
            complain_of_memory();
            _exit(0);
        }
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    };
    expect_said(work, line("no memory; raise the limit of address space (ulimit -v), or free some"));
}

// Such a call is made with an adapter's lock held.
TEST_F(ComplaintsTest, NobodyWaitsForAReaderAndALineComesOnceThereIsRoom) {
    expect_said(
        [] {
            std::array<int, 2> pipe{};
            ASSERT_EQ(::pipe(pipe.data()), 0);
            std::vector<char> much(1U << 16U);
            ASSERT_EQ(fcntl(pipe[1], F_SETFL, O_NONBLOCK), 0);
            while (write(pipe[1], much.data(), much.size()) > 0) {
            }
            ASSERT_EQ(fcntl(pipe[1], F_SETFL, 0), 0);
            const int as_before = dup(STDERR_FILENO);
            ASSERT_EQ(dup2(pipe[1], STDERR_FILENO), STDERR_FILENO);
            alarm(60);  // ends a process that waits
            errno = EMFILE;
            complain_of_memory();
            EXPECT_FALSE(is_within(Limit::Reads, 17));
            EXPECT_EQ(errno, EMFILE);
            alarm(0);
            close(pipe[0]);
            complain_of_memory();  // a lack of memory does not end it either
            ASSERT_EQ(dup2(as_before, STDERR_FILENO), STDERR_FILENO);
            complain_of_memory();
        },
        line("no memory; raise the limit of address space (ulimit -v), or free some"));
}

// A thread of the program may have stdio's lock, and wait for a thread that has the adapter's.
TEST_F(ComplaintsTest, ALineNeedsNoLockOfStdio) {
    expect_said(
        [] {
            std::thread has_it([] { flockfile(stderr); });
            has_it.join();
            alarm(60);  // ends a process that waits
            complain_of_memory();
        },
        line("no memory; raise the limit of address space (ulimit -v), or free some"));
}

TEST_F(ComplaintsTest, ALineHasAnEndHoweverLongItIs) {
    expect_said([] { complain(Speaker::Cm, std::string(2000, 'x')); },
                "librdmacm (cairn): " + std::string(1023 - 20, 'x') + "\n");
}

// A program that asks for less and less gets one line.
TEST_F(ComplaintsTest, ALimitIsToldOnceWhateverIsWanted) {
    expect_said(
        [this] {
            EXPECT_EQ(make({1, 1, 64, 1, 0}), nullptr);
            EXPECT_EQ(make({1, 1, 48, 1, 0}), nullptr);
            EXPECT_EQ(make({1, 1, 1, 33, 0}), nullptr);
            EXPECT_EQ(ibv_destroy_qp(make({1, 1, 32, 32, 0})), 0);
        },
        line("max_send_sge of 64 is refused; the device has 32 (max_sge)") +
            line("max_recv_sge of 33 is refused; the device has 32 (max_sge)"));
}

TEST_F(ComplaintsTest, QueuesBeyondTheirLimitsAreTold) {
    expect_said(
        [this] {
            EXPECT_EQ(make({(1 << 16) + 1, 1, 1, 1, 0}), nullptr);
            EXPECT_EQ(make({1, (1 << 16) + 1, 1, 1, 0}), nullptr);
            EXPECT_EQ(ibv_create_cq(context, (1 << 20) + 1, nullptr, nullptr, 0), nullptr);
            EXPECT_EQ(ibv_resize_cq(cq, (1 << 20) + 2), EINVAL);
            ibv_srq_init_attr shared{};
            shared.attr = {(1 << 16) + 1, 1, 0};
            EXPECT_EQ(ibv_create_srq(pd, &shared), nullptr);
            shared.attr = {1, 33, 0};
            EXPECT_EQ(ibv_create_srq(pd, &shared), nullptr);
        },
        line("max_send_wr of 65537 is refused; the device has 65536 (max_qp_wr)") +
            line("max_recv_wr of 65537 is refused; the device has 65536 (max_qp_wr)") +
            line("cqe of 1048577 is refused; the device has 1048576 (max_cqe)") +
            line("a shared receive queue's max_wr of 65537 is refused; the device has 65536 (max_srq_wr)") +
            line("a shared receive queue's max_sge of 33 is refused; the device has 32 (max_srq_sge)"));
}

// Libraries find the limit of inline data by trying.
TEST_F(ComplaintsTest, InlineDataBeyondTheLimitIsNotTold) {
    expect_said([this] { EXPECT_EQ(make({1, 1, 1, 1, 1U << 20U}), nullptr); }, "");
}

TEST_F(ComplaintsTest, MessagesBeyondTheLimitAreTold) {
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
    EXPECT_EQ(port.max_msg_sz, 1U << 31U);
    expect_said(
        [this] {
            for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512}) {
                ibv_qp* const qp = make({4, 4, 2, 2, 0});
                connect(qp, qp->qp_num, 4, mtu);
                EXPECT_EQ(post(qp, IBV_WR_RDMA_WRITE, 1U << 31U, 1), EINVAL);
                EXPECT_EQ(post(qp, IBV_WR_RDMA_READ, 1U << 31U, 1), EINVAL);
                EXPECT_EQ(post(qp, IBV_WR_RDMA_READ, 1U << 30U, 1), mtu == IBV_MTU_256 ? EINVAL : 0);
                EXPECT_EQ(ibv_destroy_qp(qp), 0);
            }
        },
        line("a message length of 2147483649 is refused; the device has 2147483648 (max_msg_sz)") +
            line("a READ length of 1073741825 is refused; the device has 1073741824 (a path MTU above 256 allows "
                 "more)"));
}

// Windows use places of regions.
TEST_F(ComplaintsTest, RegionsBeyondTheLimitAreTold) {
    expect_said(
        [this] {
            int windows = 0;
            while (ibv_alloc_mw(pd, IBV_MW_TYPE_1) != nullptr) {
                ++windows;
            }
            EXPECT_EQ(errno, ENOMEM);
            EXPECT_EQ(windows, 1 << 20);
            errno = 0;
            EXPECT_EQ(ibv_reg_mr(pd, &windows, sizeof(windows), 0), nullptr);
            EXPECT_EQ(errno, ENOMEM);
        },
        line("a number of memory regions and windows of 1048577 is refused; the device has 1048576 (max_mr)"));
}

TEST_F(ComplaintsTest, ReadsBeyondTheLimitAreTold) {
    EXPECT_TRUE(is_within(Limit::Reads, 16));
    expect_said(
        [] {
            EXPECT_FALSE(is_within(Limit::Reads, 17));
            EXPECT_FALSE(is_within(Limit::AnsweredReads, 17));
        },
        line("max_rd_atomic of 17 is refused; the device has 16 (max_qp_init_rd_atom)") +
            line("max_dest_rd_atomic of 17 is refused; the device has 16 (max_qp_rd_atom)"));
}

}  // namespace
}  // namespace cairn::ibverbs
