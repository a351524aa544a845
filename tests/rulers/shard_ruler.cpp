// Measures a shard of the file system alone, on one thread: requests in, answers out, no clients.
//
//   shard_ruler PATH FILES TOGETHER
//
// Makes a store of fake persistent memory at PATH, which must not exist, as in /dev/shm. Creates FILES files, TOGETHER
// of them in each turn, walks to them, and asks for their attributes. Writes and reads 3,901 bytes of each, closes and
// removes them. Prints one JSON object, thousands of calls per second, and removes PATH.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "fs/medium/backends.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/shard/shard.hpp"

namespace {

using namespace cairn;
using namespace cairn::fs;

class Ruler final : public ShardHost {
public:
    Ruler(std::string path, std::uint32_t files, std::uint32_t together)
        : path_(std::move(path)),
          files_(files),
          together_(together),
          medium_(open_pmem(path_, ((std::size_t{files} * 8000) + (std::size_t{256} << 20U)) >> 21U << 21U,
                            PmemChoice{true})
                      .value()),
          store_(Store::format(*medium_, {1U << 20U, 7, 9}).value()),
          shard_(*store_, *this, facts_, 0, 5, time_),
          data_(1U << 20U, 0x5a),
          ids_(files),
          grants_(files) {}
    ~Ruler() { ::unlink(path_.c_str()); }
    Ruler(const Ruler&) = delete;
    Ruler& operator=(const Ruler&) = delete;

    std::string measure() {
        constexpr std::uint32_t kRights = kMayRead | kMayWrite;
        std::string results;
        const auto add = [&](const char* name, const std::function<Request(std::uint32_t)>& request) {
            results += fmt::format("{}\"{}_k_s\": {:.1f}", results.empty() ? "" : ", ", name, thousands(request));
        };
        takes_ids_ = true;
        add("create",
            [&](std::uint32_t i) { return CreateRequest{kRoot, S_IFREG | 0644, kRights, true, name(i), {}}; });
        takes_ids_ = false;
        add("walk", [&](std::uint32_t i) { return WalkRequest{kRoot, 0, name(i)}; });
        add("stat", [&](std::uint32_t i) { return StatRequest{ids_[i]}; });
        add("write", [&](std::uint32_t i) { return WriteRequest{ids_[i], {kRights, grants_[i]}, 0, 0, 3901, 0}; });
        add("read", [&](std::uint32_t i) { return ReadRequest{ids_[i], {kRights, grants_[i]}, 0, 3901, 0}; });
        add("close", [&](std::uint32_t i) { return CloseRequest{ids_[i]}; });
        add("open", [&](std::uint32_t i) { return WalkRequest{kRoot, kMayRead, name(i)}; });
        add("close_again", [&](std::uint32_t i) { return CloseRequest{ids_[i]}; });
        add("remove", [&](std::uint32_t i) { return RemoveRequest{kRoot, false, name(i)}; });
        return fmt::format("{{\"files\": {}, \"together\": {}, {}}}", files_, together_, results);
    }

    void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
        WalkAnswer walked;
        FieldReader in(bytes);
        AnswerHead head;
        AnswerHead::fields(in, head);
        if (head.error != 0) {
            fmt::print(stderr, "shard_ruler: a call failed: {}\n", head.error);
            std::exit(1);
        }
        if (takes_ids_ && parse_answer(bytes, walked)) {
            ids_[token] = walked.attributes.id;
            grants_[token] = walked.proof;
        }
    }

    void send(ShardNumber /*to*/, std::span<const std::uint8_t> /*message*/) noexcept override {}

private:
    std::string_view name(std::uint32_t i) {
        name_ = fmt::format("file.mdtest.0.{}", i);
        return name_;
    }
    double thousands(const std::function<Request(std::uint32_t)>& request) {
        std::array<std::uint8_t, 4608> bytes;
        const auto begin = std::chrono::steady_clock::now();
        for (std::uint32_t i = 0; i != files_; ++i) {
            if (i % together_ == 0) {
                time_.now = time_.now + microseconds(10);
                shard_.begin_turn(time_);
            }
            const std::uint32_t length = put_request(bytes, {.sequence = ++sequence_}, request(i));
            shard_.take({i, 1, i % together_, {}, std::span(bytes).first(length), data_});
            if (i % together_ == together_ - 1) {
                (void)shard_.end_turn();
            }
        }
        (void)shard_.end_turn();
        return files_ / 1e3 / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    std::string path_;
    std::uint32_t files_;
    std::uint32_t together_;
    ClusterFacts facts_{};
    ShardTime time_{};
    std::unique_ptr<Medium> medium_;
    std::unique_ptr<Store> store_;
    Shard shard_;
    std::vector<std::uint8_t> data_;
    std::vector<FileId> ids_;
    std::vector<std::uint64_t> grants_;
    std::string name_;
    std::uint32_t sequence_ = 0;
    bool takes_ids_ = false;
};

}  // namespace

int main(int argc, char** argv) {
    const auto files = argc == 4 ? static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)) : 0;
    const auto together = argc == 4 ? static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10)) : 0;
    if (files == 0 || together == 0 || together > kMostSlotsOfClient) {
        fmt::print(stderr, "usage: shard_ruler PATH FILES TOGETHER\n");
        return 2;
    }
    Ruler ruler(argv[1], files, together);
    fmt::print("{}\n", ruler.measure());
    return 0;
}
