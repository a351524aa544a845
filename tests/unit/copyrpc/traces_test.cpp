// The traces and statistics of calls and batches.
#include <string>
#include <vector>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

class CopyrpcTraces : public TwoHosts {
protected:
    CopyrpcTraces() : TwoHosts(small_config(400)) {}
};

// The calls have waited for room or not, with a deadline or without.
TEST_F(CopyrpcTraces, HandlersSeeTheTracesOfCalls) {
    const SessionId session = connect();
    std::vector<std::uint64_t> seen;
    server.endpoint->set_handler(
        kKeep + 1,
        [](void* context, const Request& request) {
            static_cast<std::vector<std::uint64_t>*>(context)->push_back(request.trace);
            EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
        },
        &seen);
    std::vector<std::uint64_t> traces;
    for (std::uint64_t i = 0; i < 50; ++i) {
        Call call;
        call.type = kKeep + 1;
        call.trace = i % 3 == 0 ? 0 : 0xabcd'0000'0000'0000U + i;
        call.deadline = i % 2 == 0 ? Instant::never() : now + seconds(1);
        traces.push_back(call.trace);
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    run(milliseconds(10));
    EXPECT_EQ(seen, traces);
}

TEST_F(CopyrpcTraces, BatchesAreCountedByTheirMessages) {
    const SessionId session = connect();
    const auto& sizes = client.endpoint->statistics().batch_sizes.batches;
    (void)post(session, 1, 8);
    run(milliseconds(1));
    EXPECT_EQ(sizes[1], 1U);
    (void)post(session, 2, 8);
    (void)post(session, 3, 8);
    run(milliseconds(1));
    EXPECT_EQ(sizes[1], 1U);
    EXPECT_EQ(sizes[2], 1U);
    EXPECT_EQ(BatchSizes::least(0), 0U);
    EXPECT_EQ(BatchSizes::least(1), 1U);
    EXPECT_EQ(BatchSizes::least(3), 4U);
}

// Among the worker's counters, a size class is named after its smallest size.
TEST_F(CopyrpcTraces, BatchesAreListedByTheirMessages) {
    Statistics counted;
    for (std::size_t i = 0; i < BatchSizes::kClasses; ++i) {
        counted.batch_sizes.batches[i] += BatchSizes::least(i) + 1;
    }
    const telemetry::CounterReading listed = counted.list_counters().read();
    std::size_t classes = 0;
    for (std::size_t i = 0; i < listed.texts.size(); ++i) {
        if (listed.values[i] != 0) {
            EXPECT_EQ(listed.texts[i].name, "batches_of_" + std::to_string(listed.values[i] - 1));
            ++classes;
        }
    }
    EXPECT_EQ(classes, BatchSizes::kClasses);
    EXPECT_NE(client.worker->counters().json().find("\"batches_of_0\":0"), std::string::npos);
    client.endpoint.reset();
    EXPECT_EQ(client.worker->counters().json().find("batches_of_"), std::string::npos);
}

}  // namespace
}  // namespace cairn::copyrpc
