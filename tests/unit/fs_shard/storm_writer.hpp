// A client that writes to files of several shards, cuts them and reads them back, while others change their names.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string>

#include "tests/support/shard_client.hpp"
#include "tests/support/shard_cluster.hpp"

namespace cairn::fs {

// A client with one call under way, and one open file to which only it writes: so it knows the content. It may die at
// any time between two calls.
class StormWriter {
public:
    StormWriter(test::ShardCluster& cluster, std::uint64_t number, std::uint64_t seed)
        : cluster_(cluster), random_(seed), client_{number} {}

    void step();
    // Repeats the call to a shard that has come back, and that knows neither calls nor open files.
    void resend(ShardNumber shard);
    [[nodiscard]] bool is_idle() const noexcept { return token_ == 0 && !is_open_; }
    [[nodiscard]] const test::ShardClient& client() const noexcept { return client_; }

    bool stops = false;  // true: it reads its file and closes it
    std::uint64_t reads = 0;
    std::uint64_t cuts = 0;
    std::uint64_t deaths = 0;

private:
    static constexpr std::uint64_t kChunk = test::ShardCluster::kChunkBytes;
    static constexpr std::uint32_t kChunks = 8;
    static constexpr std::uint32_t kUsed = 64;  // bytes at the beginning of each chunk
    static constexpr std::uint32_t kReadAt = 4096;
    static constexpr std::uint64_t kNewNumber = 1000;

    template <class Answer>
    [[nodiscard]] static std::int32_t error_of(const std::vector<std::uint8_t>& bytes, Answer& answer) {
        const std::optional<AnswerHead> head = parse_answer(bytes, answer);
        EXPECT_TRUE(head.has_value());
        return head ? head->error : -1;
    }
    [[nodiscard]] Grant grant() const noexcept { return {kMayRead | kMayWrite, proof_}; }
    [[nodiscard]] ShardNumber home() const { return cluster_.home_of(file_); }
    void send(ShardNumber to, const Request& request);
    void begin();
    void begin_read(std::uint32_t chunk);
    void begin_write();
    void die();
    bool reopen();

    void take(const std::vector<std::uint8_t>& bytes);
    void took(const CreateRequest& request, const std::vector<std::uint8_t>& bytes);
    void took(const WriteRequest& request, const std::vector<std::uint8_t>& bytes);
    void took(const ExtendRequest& request, const std::vector<std::uint8_t>& bytes);
    void took(const SetAttributesRequest& request, const std::vector<std::uint8_t>& bytes);
    void took(const ReadRequest& request, const std::vector<std::uint8_t>& bytes);
    void took(const CloseRequest& request, const std::vector<std::uint8_t>& bytes);
    void wrote();
    void set_size(std::uint64_t size);

    test::ShardCluster& cluster_;
    sim::Random random_;
    test::ShardClient client_;
    CallToken token_ = 0;
    CallToken reopen_token_ = 0;
    bool needs_reopen_ = false;
    ShardNumber to_ = 0;
    Request request_{};
    std::string name_{};
    WriteRequest write_{};
    bool is_open_ = false;
    std::uint32_t read_ = 0;  // chunks read since it stops
    FileId file_{};
    std::uint64_t proof_ = 0;
    std::uint64_t generation_ = 0;
    std::uint64_t size_ = 0;
    std::array<std::array<std::uint8_t, kUsed>, kChunks> bytes_{};
};

}  // namespace cairn::fs
