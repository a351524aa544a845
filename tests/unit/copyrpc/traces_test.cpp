// What calls and batches tell of themselves.
#include <vector>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

class CopyrpcTraces : public TwoHosts {
protected:
    CopyrpcTraces() : TwoHosts(small_config(400)) {}
};

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

}  // namespace
}  // namespace cairn::copyrpc
