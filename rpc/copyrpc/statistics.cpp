#include "rpc/copyrpc/statistics.hpp"

namespace cairn::copyrpc {

namespace {

constexpr const char* kRange = "batches sent of so many messages, or more but less than twice as many";
constexpr std::array<telemetry::CounterText, BatchSizes::kClasses> kBatchTexts{{
    {"batches_of_0", "batches sent of no messages, which carried credit alone"},
    {"batches_of_1", "batches sent of one message"},
    {"batches_of_2", kRange},
    {"batches_of_4", kRange},
    {"batches_of_8", kRange},
    {"batches_of_16", kRange},
    {"batches_of_32", kRange},
    {"batches_of_64", kRange},
    {"batches_of_128", kRange},
    {"batches_of_256", kRange},
    {"batches_of_512", kRange},
    {"batches_of_1024", "batches sent of so many messages, or more"},
}};
static_assert(BatchSizes::least(BatchSizes::kClasses - 1) == 1024);

}  // namespace

telemetry::CounterList Statistics::list_counters() const {
    telemetry::CounterList list;
    list.add(breaches) CAIRN_LINK_COUNTERS(CAIRN_ADD_LINK_COUNTER, "copyrpc")
        .add({"copyrpc_requests_sent", "requests of ours that left"}, requests_sent)
        .add({"copyrpc_responses_received", "answers that came"}, responses_received)
        .add({"copyrpc_requests_handled", "requests whose handlers ran"}, requests_handled)
        .add({"copyrpc_requests_refused", "requests that were refused"}, requests_refused)
        .add({"copyrpc_requests_declined", "requests not executed: their handlers take no such ones"},
             requests_declined)
        .add({"copyrpc_requests_without_handler", "requests of a type without a handler"}, requests_without_handler)
        .add({"copyrpc_requests_expired", "requests not executed: their callers had given them up"}, requests_expired)
        .add({"copyrpc_calls_failed", "calls that ended without an answer"}, calls_failed)
        .add({"copyrpc_late_answers", "answers to calls that were cancelled or overdue"}, late_answers)
        .add({"copyrpc_never_answering", "sessions ended: their peers kept what others waited for"}, never_answering)
        .add({"copyrpc_requests_fetched", "long requests that were READ at their callers"}, requests_fetched)
        .add({"copyrpc_answers_written", "long answers that were WRITTEN to rooms of their callers"}, answers_written)
        .add({"copyrpc_answers_put_off", "answers that found the ring of their peer full"}, answers_put_off)
        .add({"copyrpc_requests_held_back", "requests that waited until answers before them left"}, requests_held_back)
        .add({"copyrpc_words_read", "READs of the word that tells how far a peer is"}, words_read)
        .add({"copyrpc_answers_given_up", "answers given up for want of memory"}, answers_given_up)
        .add({"copyrpc_one_sided_reads", "READs that programs asked for"}, one_sided.reads)
        .add({"copyrpc_one_sided_writes", "WRITEs that programs asked for"}, one_sided.writes)
        .add({"copyrpc_batches_sent", "batches of messages that were sent"}, batches_sent);
    for (std::size_t i = 0; i < kBatchTexts.size(); ++i) {
        list.add(kBatchTexts[i], batch_sizes.batches[i]);
    }
    return list;
}

}  // namespace cairn::copyrpc
