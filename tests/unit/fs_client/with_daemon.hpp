// A test's daemon and client.
#pragma once

#include <fcntl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "fs/client/cairnfs.hpp"
#include "tests/unit/fs_client/fake_daemon.hpp"

namespace cairn::fs {

// A daemon and a client of it.
class WithDaemon : public testing::Test {
protected:
    void begin(const FakeSetup& setup, Duration timeout = seconds(10)) {
        daemon.emplace(setup);
        fs = connect(timeout);
    }
    std::unique_ptr<Client> connect(Duration timeout = seconds(10)) {
        return Client::connect({.socket = daemon->socket(), .timeout = timeout, .umask = 022}).value();
    }
    void make(std::string_view path, std::string_view text = {}) {
        const Outcome<File*> file = fs->open(path, O_CREAT | O_RDWR).wait();
        ASSERT_EQ(file.error, 0) << path;
        EXPECT_EQ(fs->pwrite(*file.value, bytes(text), 0).wait().value, text.size());
        EXPECT_EQ(fs->close(*file.value).wait().error, 0);
    }
    std::string content(std::string_view path, std::size_t most = 1 << 20) {
        const Outcome<File*> file = fs->open(path, O_RDONLY).wait();
        std::string text(most, '?');
        if (!file.ok()) {
            return "error " + std::to_string(file.error);
        }
        const Outcome<std::uint64_t> got =
            fs->pread(*file.value, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}, 0).wait();
        EXPECT_EQ(fs->close(*file.value).wait().error, 0);
        text.resize(got.value);
        return got.ok() ? text : "error " + std::to_string(got.error);
    }
    static std::span<const std::uint8_t> bytes(std::string_view text) {
        return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
    }
    struct Counts {
        int ended = 0;
        int failed = 0;
        int error = 0;
    };
    static void count(void* context, Outcome<Attributes> outcome) {
        auto& counts = *static_cast<Counts*>(context);
        ++counts.ended;
        counts.failed += outcome.ok() ? 0 : 1;
        counts.error = outcome.error;
    }
    template <class Predicate>
    static void eventually(Predicate holds) {
        for (int i = 0; i != 5000 && !holds(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_TRUE(holds());
    }
    void hold_answers(bool hold) {
        daemon->with([hold](FakeDaemon& all) { all.answers = !hold; });
    }
    void answer_all_with(FakeFiles::Bytes bytes) {
        daemon->with(
            [&bytes](FakeDaemon& all) { all.fault = [bytes](const ParsedRequest&) { return std::optional(bytes); }; });
    }

    std::optional<FakeDaemon> daemon;
    std::unique_ptr<Client> fs;
};

}  // namespace cairn::fs
