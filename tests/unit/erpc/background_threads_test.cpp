// Background handlers on real threads: properties that stepping cannot show.
#include <sched.h>

#include "tests/unit/erpc/background_fixture.hpp"

namespace cairn::erpc {
namespace {

TEST_F(Background, ThreadsAnswerManyCallsUnderLossAndDoublingEachRunOnce) {
    open(3, 6);
    client->port.fate = [](std::uint64_t number) { return number % 5 == 2 ? 0 : number % 7 == 3 ? 2 : 1; };
    server->port.fate = [](std::uint64_t number) { return number % 4 == 1 ? 0 : number % 6 == 5 ? 2 : 1; };
    for (std::uint64_t tag = 0; tag < 200; ++tag) {
        post(tag, tag % 10 == 0 ? 5000 : 20 + tag);
    }
    run_until_answered(200);
    expect_answered(200);
    EXPECT_EQ(executions, 200);
    expect_all_returned();
}

TEST_F(Background, ALongJobHoldsUpNoOtherThreadsJobs) {
    open(2, 8);
    held = true;
    post(1);
    run(milliseconds(1));
    begun.acquire();
    held = false;
    for (std::uint64_t tag = 2; tag < 6; ++tag) {
        post(tag);
    }
    run_until_answered(4);
    EXPECT_EQ(results.count(1), 0U);
    go_on.release();
    run_until_answered(5);
    expect_answered(5);
    expect_all_returned();
}

TEST_F(Background, AnEndpointThatEndsWaitsForTheHandlerThatRuns) {
    open(1, 8);
    held = true;
    post(1);
    post(2);
    run(milliseconds(1));
    begun.acquire();
    std::atomic<bool> over{false};
    std::thread releaser([this, &over] {
        held = false;
        over = true;
        go_on.release();
    });
    server->endpoint.reset();
    EXPECT_TRUE(over);
    EXPECT_LE(executions, 2);  // the second one may just have begun
    EXPECT_EQ(server->pool->live(), 0U);
    releaser.join();
}

cpu_set_t cpus_of_caller() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    EXPECT_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    return cpus;
}

void note_cpus(void* context, BackgroundRequest&) {
    *static_cast<cpu_set_t*>(context) = cpus_of_caller();
}

// Returns the CPUs of a pool's thread.
cpu_set_t cpus_of_thread(const BackgroundConfig& config) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const auto pool = BackgroundPool::create(config).value();
    rpc::BackgroundJob* const job = pool->take();
    job->function = &note_cpus;
    job->context = &cpus;
    pool->submit(*job);
    while (!pool->any_finished()) {
        std::this_thread::yield();
    }
    pool->give_back(*pool->poll_finished(Instant{}));
    return cpus;
}

TEST(BackgroundCpus, ThreadsRunWhereTheirCreatorMayOrWhereTheyAreTold) {
    const cpu_set_t all = cpus_of_caller();
    BackgroundConfig config;
    const cpu_set_t same = cpus_of_thread(config);
    EXPECT_TRUE(CPU_EQUAL(&same, &all));
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &all)) {
            continue;
        }
        config.cpus = {cpu};
        const cpu_set_t one = cpus_of_thread(config);
        EXPECT_TRUE(CPU_ISSET(cpu, &one) && CPU_COUNT(&one) == 1) << cpu;
    }
}

TEST(BackgroundCpus, ACpuThatIsNotThereIsRefused) {
    for (const std::uint32_t cpu : {std::uint32_t{CPU_SETSIZE - 1}, std::uint32_t{CPU_SETSIZE}}) {
        BackgroundConfig config;
        config.cpus = {cpu};
        EXPECT_FALSE(BackgroundPool::create(config).ok()) << cpu;
    }
}

}  // namespace
}  // namespace cairn::erpc
