// Captures of programs that end in all ways: no frame is missing or cut.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "tests/programs/rdmacm_api.hpp"
#include "tests/support/pcap_reader.hpp"

namespace rdmacm_test {
namespace {

constexpr std::string_view kLastWords = "the last words of a program";

void end_as(std::string_view way) {
    if (way == "exit") {
        std::exit(0);
    } else if (way == "_exit") {
        _exit(0);
    } else if (way == "quick_exit") {
        std::quick_exit(0);
    } else if (way == "exec") {
        execl("/bin/true", "true", nullptr);
    } else if (way == "abort") {
        std::abort();
    } else if (way == "signal") {
        raise(SIGTERM);
    }
}

// Another process, started by a test below: it sends a message to itself, and ends.
TEST_F(RdmacmApiTest, DISABLED_ProgramThatEnds) {
    const char* const way = std::getenv("RDMACM_TEST_WAY");
    ASSERT_NE(way, nullptr);
    const IdPtr server = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(server));
    make_qp(client.get());
    ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
    const IdPtr asked = request(server);
    make_qp(asked.get());
    std::array<char, 64> said{};
    std::array<char, 64> heard{};
    std::copy(kLastWords.begin(), kLastWords.end(), said.begin());
    ibv_mr* const of_said = rdma_reg_msgs(client.get(), said.data(), said.size());
    ibv_mr* const of_heard = rdma_reg_msgs(asked.get(), heard.data(), heard.size());
    ASSERT_EQ(rdma_post_recv(asked.get(), nullptr, heard.data(), heard.size(), of_heard), 0);
    ASSERT_EQ(rdma_accept(asked.get(), nullptr), 0);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_EQ(rdma_post_send(client.get(), nullptr, said.data(), said.size(), of_said, IBV_SEND_SIGNALED), 0);
    ibv_wc done{};
    ASSERT_EQ(rdma_get_recv_comp(asked.get(), &done), 1);
    ASSERT_EQ(rdma_get_send_comp(client.get(), &done), 1);
    ASSERT_EQ(done.status, IBV_WC_SUCCESS);
    end_as(way);
    rdma_dereg_mr(of_said);
    rdma_dereg_mr(of_heard);
}

class EndedProgramTest : public testing::TestWithParam<const char*> {
protected:
    EndedProgramTest() : file(testing::TempDir() + "cairn_end_" + std::to_string(getpid()) + ".pcap") {}
    ~EndedProgramTest() override { unlink(file.c_str()); }
    int run() const {
        const pid_t program = fork();
        if (program == 0) {
            const rlimit none{0, 0};
            setrlimit(RLIMIT_CORE, &none);
            unsetenv("CAIRN_DEVICES");  // it has addresses of its own
            setenv("RDMACM_TEST_WAY", GetParam(), 1);
            setenv("CAIRN_PCAP", file.c_str(), 1);
            execl("/proc/self/exe", "program", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=*.DISABLED_ProgramThatEnds", nullptr);
            _exit(1);
        }
        int status = -1;
        EXPECT_EQ(waitpid(program, &status, 0), program);
        return status;
    }

    const std::string file;
};

TEST_P(EndedProgramTest, LeavesAWholeCapture) {
    const int status = run();
    const std::string_view way = GetParam();
    EXPECT_EQ(status, way == "abort" ? SIGABRT : way == "signal" ? SIGTERM : 0);
    const auto frames = cairn::test::read_pcap(file);
    std::size_t bytes = 24;
    for (const auto& frame : frames) {
        bytes += 16 + frame.size();
    }
    EXPECT_EQ(bytes, std::filesystem::file_size(file));
    const auto says_so = [](const cairn::test::Frame& frame) {
        return std::search(frame.begin(), frame.end(), kLastWords.begin(), kLastWords.end()) != frame.end();
    };
    const auto sent = std::find_if(frames.begin(), frames.end(), says_so);
    ASSERT_NE(sent, frames.end());
    const auto received = std::find_if(sent + 1, frames.end(), says_so);
    ASSERT_NE(received, frames.end());
    EXPECT_GE(frames.end() - received, 3) << "and the acknowledgement, sent and received";
}

INSTANTIATE_TEST_SUITE_P(Ways, EndedProgramTest,
                         testing::Values("return", "exit", "_exit", "quick_exit", "exec", "abort", "signal"),
                         [](const auto& way) {
                             std::string name = way.param;
                             std::replace(name.begin(), name.end(), '_', 'X');
                             return name;
                         });

}  // namespace
}  // namespace rdmacm_test
