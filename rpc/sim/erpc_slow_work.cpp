// Slow work in a simulated eRPC world: coroutines, and threads that the world simulates.
#include <algorithm>
#include <array>
#include <optional>

#include "rpc/sim/erpc_scenario.hpp"

namespace cairn::sim {

// Counts coroutine frames, as a local of each.
class CountedFrame {
public:
    explicit CountedFrame(int& frames) noexcept : frames_(frames) { ++frames_; }
    CountedFrame(const CountedFrame&) = delete;
    CountedFrame& operator=(const CountedFrame&) = delete;
    ~CountedFrame() { --frames_; }

private:
    int& frames_;
};

Duration ErpcScenario::job_time() {
    const bool long_one = !world_.healed() && random_.chance(50'000);
    return random_.between(Duration{}, long_one          ? milliseconds(20)
                                       : world_.healed() ? microseconds(50)
                                                         : milliseconds(1));
}

void ErpcScenario::begin_jobs(ErpcNode& node) {
    for (std::uint32_t thread = 0; thread < node.job_ends.size(); ++thread) {
        if (node.job_ends[thread] == Instant::never() && node.background->has_job(thread)) {
            node.job_ends[thread] = world_.now() + job_time();
        }
    }
}

// Runs handlers at the end of their jobs' time, so that the worker's actions up to then cannot have changed the jobs.
void ErpcScenario::end_jobs(ErpcNode& node) {
    for (std::uint32_t thread = 0; thread < node.job_ends.size(); ++thread) {
        if (node.job_ends[thread] <= world_.now()) {
            node.job_ends[thread] = Instant::never();
            check(node.background->run_one(thread), "a thread keeps its job", &node);
        }
    }
    begin_jobs(node);
}

void ErpcScenario::work(ErpcNode& node, erpc::BackgroundRequest& request) {
    ++counters_.jobs;
    CallTag tag;
    if (!begin(node, request.payload(), tag)) {
        return;
    }
    check(request.type() == kBackground || request.type() == kBrief, "a request keeps its type", &node);
    const std::span<std::uint8_t> room = request.reserve(tag.response_bytes);
    check(write_response(room, tag), "a handler gets the room it asks for, all 0", &node);
}

// Makes calls one after the other, as a client.
erpc::Task<> ErpcScenario::converse(ErpcNode& node, SessionId session, std::uint64_t calls) {
    const CountedFrame counted(node.frames);
    erpc::Endpoint& endpoint = *node.endpoint;
    while (calling_ && calls-- > 0) {
        CallRecord& record = plan_call(node);
        const erpc::Call call = call_of(record);
        const erpc::CallResult result = co_await erpc::call(endpoint, session, call, node.now(), &record.id);
        ++counters_.awaited;
        if (record.id == 0) {
            check(result.status == erpc::CallStatus::TableFull || result.status == erpc::CallStatus::Disconnected,
                  "a call that is refused says why", &node);
            abandon(node, record);
            co_return;
        }
        end_record(node, record, result);
        node.pool->release(record.response);
        if (result.status != erpc::CallStatus::Ok) {
            co_return;  // the session may have another user by now
        }
    }
}

// Answers after other servers have answered its calls, one after the other.
erpc::Task<> ErpcScenario::relay(void* context, erpc::Request request) {
    auto& node = *static_cast<ErpcNode*>(context);
    ErpcScenario& scenario = *node.scenario;
    const CountedFrame counted(node.frames);
    CallTag tag;
    if (!scenario.begin(node, request.payload, tag)) {
        co_return;
    }
    scenario.check_order(node, request.handle.session, tag);
    for (std::uint64_t hops = scenario.random_.between(1, 3); hops > 0; --hops) {
        const ClientSession* const next = scenario.session_for_handlers(node);
        if (next == nullptr) {
            break;
        }
        const CallTag inner{static_cast<std::uint32_t>(node.index), kInnerCall, 16};
        std::array<std::uint8_t, sizeof(CallTag)> bytes{};
        fill_request(bytes, inner);
        erpc::Call call;
        call.type = kAtOnce;
        call.request = bytes;
        const erpc::CallResult result = co_await erpc::call(request.endpoint, next->id, call, node.now());
        ++scenario.counters_.awaited;
        if (result.status != erpc::CallStatus::Ok) {
            break;
        }
        scenario.check(
            result.response.size() == inner.response_bytes && holds(result.response, 0, inner, Part::Response),
            "an inner response is its request's", &node);
    }
    LateAnswer last{scenario.world_.now(), request.handle, tag};
    (void)scenario.answer(node, request.endpoint, last);  // without a buffer the request is refused
}

}  // namespace cairn::sim
