// Capture files: they are read back complete, segments are joined, times are kept, and disks may be full.
#include "lib/port/pcap_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/hex.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::port {
namespace {

using test::Frame;

// A file name of this test's own, removed at the end.
struct TemporaryPath {
    explicit TemporaryPath(const char* suffix = "")
        : path(testing::TempDir() + "cairn_pcap_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name() + suffix) {}
    TemporaryPath(const TemporaryPath&) = delete;
    ~TemporaryPath() { ::unlink(path.c_str()); }
    std::string path;
};

Frame frame_of(std::size_t bytes) {
    Frame frame(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        frame[i] = static_cast<std::uint8_t>(i * 7 + bytes);
    }
    return frame;
}

Frame read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(PcapWriter, WritesTheGoldenBytesOfOneFrame) {
    const TemporaryPath file;
    {
        auto writer = PcapWriter::open(file.path, seconds(1'700'000'000)).value();
        writer->add(test::from_hex("0102030405"), Instant{5'000'000'007});
    }
    EXPECT_EQ(test::to_hex(read_bytes(file.path)),
              "4d3cb2a1020004000000000000000000000002000100000005f153650700000005000000050000000102030405");
}

TEST(PcapWriter, WhatIsWrittenIsReadBackWhateverItsSizeAndSegments) {
    const TemporaryPath file;
    std::vector<Frame> frames;
    auto writer = PcapWriter::open(file.path, {}).value();
    for (std::size_t bytes = 0; bytes < 600; ++bytes) {
        frames.push_back(frame_of(bytes * 7));
        const std::span<const std::uint8_t> frame = frames.back();
        const std::size_t cut = frame.size() / 3;
        const std::array<std::span<const std::uint8_t>, 4> segments{frame.first(cut), frame.subspan(cut, 0),
                                                                    frame.subspan(cut, cut), frame.subspan(2 * cut)};
        writer->add(segments, Instant{1});
    }
    EXPECT_LT(test::read_pcap(file.path).size(), frames.size()) << "the last frames wait in the buffer";
    EXPECT_TRUE(writer->flush());
    EXPECT_EQ(test::read_pcap(file.path), frames);
    EXPECT_EQ(writer->frames_taken(), frames.size());
    EXPECT_EQ(writer->frames_lost(), 0U);
}

TEST(PcapWriter, TimesOutsideTheFormatAreTheNearestThereIs) {
    const TemporaryPath file;
    {
        auto writer = PcapWriter::open(file.path, {}).value();
        writer->add(Frame{}, Instant{-1});
        writer->add(Frame{}, Instant{5'000'000'000'000'000'000});
    }
    const Frame bytes = read_bytes(file.path);
    EXPECT_EQ(test::to_hex(std::span(bytes).subspan(24, 8)), "0000000000000000");
    EXPECT_EQ(test::to_hex(std::span(bytes).subspan(40, 8)), "ffffffffffc99a3b");
}

TEST(PcapWriter, AFrameLargerThanTheFormatAllowsIsCountedAndTheOthersStay) {
    const TemporaryPath file;
    auto writer = PcapWriter::open(file.path, {}).value();
    const Frame largest = frame_of(PcapWriter::kFrameBytesMax);
    writer->add(largest, Instant{1});
    writer->add(frame_of(PcapWriter::kFrameBytesMax + 1), Instant{2});
    writer->add(largest, Instant{3});
    EXPECT_TRUE(writer->flush());
    EXPECT_EQ(test::read_pcap(file.path), (std::vector<Frame>{largest, largest}));
    EXPECT_EQ(writer->frames_lost(), 1U);
}

TEST(PcapWriter, AnExistingFileIsEmptiedFirst) {
    const TemporaryPath file;
    std::ofstream(file.path) << std::string(1000, 'x');
    PcapWriter::open(file.path, {}).value()->add(frame_of(10), Instant{1});
    EXPECT_EQ(test::read_pcap(file.path), (std::vector<Frame>{frame_of(10)}));
}

// Runs in a process of its own, in which a writer finds `file` taken. Returns whether it wrote to `expected`.
bool write_beside(const std::string& file, const std::string& expected) {
    auto writer = PcapWriter::open(file, {}).value();
    writer->add(frame_of(2), Instant{1});
    return writer->flush() && writer->path() == expected;
}

TEST(PcapWriter, AFileIsSharedInAProcessAndLeftToItByOthers) {
    const TemporaryPath file(".pcap");
    const std::string stem = file.path.substr(0, file.path.size() - 4);
    auto first = PcapWriter::open(file.path, {}).value();
    first->add(frame_of(1), Instant{1});
    EXPECT_TRUE(first->flush());
    PcapWriter::open(file.path, {}).value()->add(frame_of(3), Instant{1});
    for (const char* const end : {".pcap", "-1.pcap"}) {
        const pid_t other = ::fork();
        if (other == 0) {
            const std::string own = stem + std::to_string(::getpid());
            const int taken = *end == '.' ? -1 : ::open((own + ".pcap").c_str(), O_WRONLY | O_CREAT, 0600);
            (void)::flock(taken, LOCK_EX);
            _exit(write_beside(file.path, own + end) ? 0 : 1);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(other, &status, 0), other);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(test::read_pcap(stem + std::to_string(other) + end), std::vector<Frame>{frame_of(2)});
        ::unlink((stem + std::to_string(other) + ".pcap").c_str());
        ::unlink((stem + std::to_string(other) + end).c_str());
    }
    EXPECT_EQ(test::read_pcap(file.path), (std::vector<Frame>{frame_of(1), frame_of(3)}));
}

TEST(PcapWriter, APlaceThatCannotBeWrittenIsNamedWithARemedy) {
    for (const char* path : {"/nonexistent/folder/a.pcap", "/", "", "/dev/full"}) {
        const auto writer = PcapWriter::open(path, {});
        ASSERT_FALSE(writer.ok()) << path;
        EXPECT_NE(writer.error().what.find(std::string("'") + path + "'"), std::string::npos);
        EXPECT_FALSE(writer.error().remedy.empty());
    }
}

// While this lives, the disk is full after this many bytes of any file.
class FullDisk {
public:
    explicit FullDisk(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    FullDisk(const FullDisk&) = delete;
    ~FullDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int) = SIG_DFL;
};

TEST(PcapWriter, AFullDiskCostsFramesAndTheFileStaysWhole) {
    const TemporaryPath file;
    auto writer = PcapWriter::open(file.path, {}).value();
    const Frame frame = frame_of(1000);
    constexpr std::uint64_t kFrames = 4 * PcapWriter::kBufferBytes / 1000;
    std::uint64_t written = 0;
    {
        const FullDisk full(10'000);
        for (std::uint64_t i = 0; i < kFrames; ++i) {
            writer->add(frame, Instant{1});
        }
        EXPECT_FALSE(writer->flush());
        written = test::read_pcap(file.path).size();
        EXPECT_EQ(read_bytes(file.path).size(), 24 + written * 1016) << "cut at the end of a frame";
    }
    EXPECT_EQ(written, 9U);
    EXPECT_GT(writer->frames_lost(), 0U);
    EXPECT_EQ(writer->frames_taken() + writer->frames_lost(), kFrames);
    EXPECT_TRUE(writer->flush()) << "there is room again";
    writer->add(frame, Instant{2});
    EXPECT_TRUE(writer->flush());
    const std::vector<Frame> frames = test::read_pcap(file.path);
    EXPECT_EQ(frames.size(), writer->frames_taken());
    EXPECT_EQ(frames, std::vector<Frame>(frames.size(), frame));
}

TEST(PcapWriter, APipeThatNoOneReadsCostsFramesNotTimeAndGoesOnWhereItStopped) {
    const TemporaryPath pipe;
    ASSERT_EQ(::mkfifo(pipe.path.c_str(), 0600), 0);
    EXPECT_FALSE(PcapWriter::open(pipe.path, {}).ok()) << "no reader yet";
    const int reader = ::open(pipe.path.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    Frame read;
    const auto drain = [&read, reader] {
        std::array<std::uint8_t, 4096> chunk;
        for (ssize_t got = ::read(reader, chunk.data(), chunk.size()); got > 0;
             got = ::read(reader, chunk.data(), chunk.size())) {
            read.insert(read.end(), chunk.begin(), chunk.begin() + got);
        }
    };
    auto writer = PcapWriter::open(pipe.path, {}).value();
    const Frame frame = frame_of(1000);
    for (std::size_t i = 0; i < 4 * PcapWriter::kBufferBytes / 1000; ++i) {
        writer->add(frame, Instant{1});
    }
    EXPECT_GT(writer->frames_lost(), 0U);
    do {
        drain();
    } while (!writer->flush());
    drain();
    ::close(reader);
    EXPECT_EQ(read.size(), 24 + writer->frames_taken() * 1016);
    const TemporaryPath copy("_copy");
    std::ofstream(copy.path, std::ios::binary)
        .write(reinterpret_cast<const char*>(read.data()), static_cast<std::streamsize>(read.size()));
    EXPECT_EQ(test::read_pcap(copy.path), std::vector<Frame>(writer->frames_taken(), frame));
}

TEST(PcapWriter, SeveralWriteOneFileInTheOrderInWhichTheyFlush) {
    const TemporaryPath file;
    auto first = PcapWriter::open(file.path, {}).value();
    auto second = first->beside();
    first->add(frame_of(1), Instant{1});
    second->add(frame_of(2), Instant{1});
    first->add(frame_of(3), Instant{1});
    EXPECT_TRUE(second->flush());
    EXPECT_TRUE(first->flush());
    {
        const FullDisk full(24 + 3 * 16 + 6 + 20);
        second->add(frame_of(4), Instant{1});
        second->add(frame_of(5), Instant{1});
        first->add(frame_of(6), Instant{1});
        EXPECT_FALSE(second->flush());
        EXPECT_FALSE(first->flush());
    }
    EXPECT_TRUE(first->flush());
    first.reset();
    EXPECT_TRUE(second->flush());
    EXPECT_EQ(test::read_pcap(file.path),
              (std::vector<Frame>{frame_of(2), frame_of(1), frame_of(3), frame_of(4), frame_of(6), frame_of(5)}));
}

// Runs in a process of its own, which writes until it is ended.
[[noreturn]] void write_for_ever(const std::string& path) {
    for (const int each : {SIGHUP, SIGINT, SIGTERM}) {
        std::signal(each, SIG_DFL);
    }
    const auto writer = PcapWriter::open(path, {}).value();
    const auto write = [](PcapWriter& to) {
        const Frame frame = frame_of(4150);
        for (;;) {
            for (int i = 0; i < 64; ++i) {
                to.add(frame, Instant{1});
            }
            to.flush();
        }
    };
    const std::unique_ptr<PcapWriter> other = writer->beside();
    const std::thread beside([&other, write] { write(*other); });
    write(*writer);
    _exit(1);
}

// A signal may interrupt any thread, in any part of a write.
TEST(PcapWriter, ASignalThatEndsTheProgramCutsNoFrame) {
    const TemporaryPath file;
    for (int i = 0; i < 30; ++i) {
        ::unlink(file.path.c_str());
        const int signal = std::array{SIGTERM, SIGINT, SIGHUP}[static_cast<std::size_t>(i) % 3];
        const pid_t program = ::fork();
        if (program == 0) {
            write_for_ever(file.path);
        }
        struct stat is {};
        while (::stat(file.path.c_str(), &is) != 0 || is.st_size < 100'000) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ::kill(program, signal);
        int status = 0;
        ASSERT_EQ(::waitpid(program, &status, 0), program);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
        ASSERT_EQ(::stat(file.path.c_str(), &is), 0);
        EXPECT_EQ((is.st_size - 24) % (16 + 4150), 0) << "cut";
    }
}

TEST(PcapWriter, SignalsThatTheProgramHandlesOrIgnoresAreLeftToIt) {
    const TemporaryPath file;
    const auto before = std::signal(SIGTERM, SIG_IGN);
    EXPECT_TRUE(PcapWriter::open(file.path, {}).ok());
    EXPECT_EQ(std::signal(SIGTERM, before), SIG_IGN);
}

// The reader of a pipe takes any number of bytes, but the end of a frame still follows its beginning.
TEST(PcapWriter, FramesOfSeveralAreNotMixedInAPipe) {
    const TemporaryPath pipe;
    ASSERT_EQ(::mkfifo(pipe.path.c_str(), 0600), 0);
    const int reader = ::open(pipe.path.c_str(), O_RDONLY | O_NONBLOCK);
    std::vector<std::unique_ptr<PcapWriter>> writers;
    writers.push_back(PcapWriter::open(pipe.path, {}).value());
    writers.push_back(writers.front()->beside());
    std::vector<Frame> wanted;
    Frame read;
    const auto take = [&read, reader](std::size_t most) {
        Frame chunk(most);
        const ssize_t got = ::read(reader, chunk.data(), chunk.size());
        read.insert(read.end(), chunk.begin(), chunk.begin() + std::max<ssize_t>(got, 0));
        return got > 0;
    };
    for (std::size_t i = 0; i < 200; ++i) {
        writers[0]->add(frame_of(3000), Instant{1});
        writers[1]->add(frame_of(3001), Instant{1});
    }
    bool all = false;
    for (int turns = 0; turns < 1'000'000 && !all; ++turns) {
        (void)take(5000);
        const bool first = writers[0]->flush();
        all = writers[1]->flush() && first;
    }
    EXPECT_TRUE(all);
    while (take(65536)) {
    }
    ::close(reader);
    const TemporaryPath copy("_copy");
    std::ofstream(copy.path, std::ios::binary)
        .write(reinterpret_cast<const char*>(read.data()), static_cast<std::streamsize>(read.size()));
    const std::vector<Frame> frames = test::read_pcap(copy.path);
    EXPECT_EQ(read.size(), 24U + 200 * (16 + 3000) + 200 * (16 + 3001));
    EXPECT_EQ(std::count(frames.begin(), frames.end(), frame_of(3000)), 200);
    EXPECT_EQ(std::count(frames.begin(), frames.end(), frame_of(3001)), 200);
}

}  // namespace
}  // namespace cairn::port
