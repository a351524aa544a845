// Captures of sockets: complete and at once in the file, however slow its reader is, and without waiting.
#include "lib/port/datagram_capture.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/support/pcap_reader.hpp"

namespace cairn::port {
namespace {

class DatagramCaptures : public testing::Test {
protected:
    DatagramCaptures()
        : file(testing::TempDir() + "cairn_capture_" + std::to_string(::getpid())),
          path({net::IpAddress::from_v4(1), net::IpAddress::from_v4(2), 0xc000, 0}) {}
    ~DatagramCaptures() override { ::unlink(file.c_str()); }

    // Records a datagram that begins with its number.
    void record(DatagramCapture& capture, std::size_t bytes, std::size_t lane = 0) {
        std::vector<std::uint8_t> datagram(bytes, static_cast<std::uint8_t>(bytes));
        std::memcpy(datagram.data(), &recorded, sizeof(recorded));
        ++recorded;
        const std::array<std::span<const std::uint8_t>, 2> pieces{std::span(datagram).first(10),
                                                                  std::span(datagram).subspan(10)};
        capture.lane(lane).record(Direction::Transmit, path, pieces, 0, 0);
    }
    // Lets the capture's thread work until `done()`. Returns false if that never comes.
    template <class Done>
    static bool wait_until(Done&& done) {
        for (int tries = 0; tries < 2'000; ++tries) {
            if (done()) {
                return true;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }
    [[nodiscard]] static std::uint32_t number_of(const test::Frame& frame) {
        std::uint32_t number = 0;
        std::memcpy(&number, frame.data() + kLowerBytes, sizeof(number));
        return number;
    }

    static constexpr std::size_t kLowerBytes = 42;  // of the file's frames
    std::string file;
    Path path;
    std::uint32_t recorded = 0;
};

// This needs no action at the end of the program.
TEST_F(DatagramCaptures, WhatWasFlushedIsInTheFile) {
    auto capture = DatagramCapture::open(file).value();
    for (std::size_t frames = 1; frames <= 2; ++frames) {
        record(*capture, 100 * frames);
        EXPECT_EQ(test::read_pcap(file).size(), frames - 1);
        capture->lane(0).flush();
        EXPECT_EQ(test::read_pcap(file).size(), frames);
    }
    EXPECT_EQ(test::read_pcap(file).back().size(), kLowerBytes + 200);
}

TEST_F(DatagramCaptures, WhatSeveralThreadsRecordStandsInTheOrderInWhichTheyFlush) {
    auto capture = DatagramCapture::open(file, 3).value();
    for (std::size_t i = 0; i < 300; ++i) {
        const std::size_t lane = i / 5 * 7 % 3;
        record(*capture, 100, lane);
        if (i % 5 == 4) {
            capture->lane(lane).flush();
        }
    }
    const std::vector<test::Frame> frames = test::read_pcap(file);
    ASSERT_EQ(frames.size(), 300U);
    for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(number_of(frames[i]), i);
    }
}

TEST_F(DatagramCaptures, AReaderThatPausesCostsDatagramsButNeitherTimeNorTheRest) {
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    const int reader = ::open(file.c_str(), O_RDONLY | O_NONBLOCK);
    auto capture = DatagramCapture::open(file).value();
    std::vector<std::uint8_t> read;
    const auto drain = [&read, reader] {
        std::array<std::uint8_t, 65536> chunk;
        for (ssize_t got = ::read(reader, chunk.data(), chunk.size()); got > 0;
             got = ::read(reader, chunk.data(), chunk.size())) {
            read.insert(read.end(), chunk.begin(), chunk.begin() + got);
        }
    };
    constexpr std::size_t kFrames = 300;  // four times the size of buffer and pipe
    constexpr std::size_t kLarge = 60'000;
    for (std::size_t i = 0; i < kFrames; ++i) {
        record(*capture, kLarge);
    }
    constexpr std::size_t kLast = 77;
    const auto ends_with_the_last = [&] {
        drain();
        record(*capture, kLast);
        capture->lane(0).flush();
        return read.size() > kLowerBytes + kLast && read.back() == kLast;
    };
    EXPECT_TRUE(wait_until(ends_with_the_last));
    std::atomic<bool> over{false};
    std::thread end([&] {
        capture.reset();
        over = true;
    });
    EXPECT_TRUE(wait_until([&] {
        drain();
        return over.load();
    }));
    end.join();
    drain();
    ::close(reader);
    ::unlink(file.c_str());
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(read.data()), static_cast<std::streamsize>(read.size()));
    const std::vector<test::Frame> frames = test::read_pcap(file);
    std::size_t large = 0;
    std::size_t bytes = 24;
    EXPECT_EQ(number_of(frames.front()), 0U) << "what is missed is newer than what the file has not taken yet";
    std::uint32_t numbers_from = 0;
    for (const test::Frame& frame : frames) {
        EXPECT_GE(number_of(frame), numbers_from);
        numbers_from = number_of(frame) + 1;
        bytes += 16 + frame.size();
        large += frame.size() == kLowerBytes + kLarge ? 1U : 0U;
        EXPECT_TRUE(frame.size() == kLowerBytes + kLarge || frame.size() == kLowerBytes + kLast) << "torn";
    }
    EXPECT_EQ(bytes, read.size()) << "nothing is cut off at the end";
    EXPECT_GT(large, 0U);
    EXPECT_LT(large, kFrames);
    EXPECT_EQ(frames.back().size(), kLowerBytes + kLast);
}

}  // namespace
}  // namespace cairn::port
