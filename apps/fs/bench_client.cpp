// Operations of the client library, many of them under way together.
#include <fcntl.h>
#include <fmt/format.h>

#include <coroutine>
#include <cstdlib>
#include <deque>
#include <optional>

#include "apps/fs/bench.hpp"
#include "apps/fs/elsewhere.hpp"

namespace cairn::fstool {

namespace {

// A coroutine that runs by itself.
struct Flow {
    struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
        Flow get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        [[noreturn]] void unhandled_exception() noexcept { std::abort(); }
    };
};

class ClientFiles final : public BenchFiles {
public:
    ClientFiles(fs::Client& client, std::string path, const Options& options)
        : client_(client), options_(options), path_(std::move(path)), data_path_(joined(path_, "data")) {}

    int make_directory() override {
        const int error = client_.mkdir(path_).wait().error;
        return error != 0 ? error : choose_names();
    }
    int remove_directory() override { return client_.rmdir(path_).wait().error; }
    int open_data(bool creates) override {
        const auto opened = client_.open(data_path_, creates ? O_RDWR | O_CREAT | O_EXCL : O_RDWR).wait();
        data_ = opened.value;
        if (opened.error != 0 || !elsewhere_) {
            return opened.error;
        }
        const auto found = client_.stat(*data_).wait();
        data_id_ = found.value.id;
        return found.error;
    }
    int write_data(std::span<const std::uint8_t> from, std::uint64_t offset) override {
        return done(client_.pwrite(*data_, from, place_of(offset)).wait(), from.size());
    }
    int read_data(std::span<std::uint8_t> to, std::uint64_t offset) override {
        return done(client_.pread(*data_, to, place_of(offset)).wait(), to.size());
    }
    std::span<std::uint8_t> buffer(std::size_t bytes) override {
        return options_.shares_buffers ? shared_.emplace_back(client_, bytes).bytes()
                                       : std::span(own_.emplace_back(bytes));
    }
    int close_data() override { return client_.close(*data_).wait().error; }
    int remove_data() override { return client_.unlink(data_path_).wait().error; }

    int each(Each what, std::uint32_t files, std::uint32_t in_flight, std::uint32_t bytes) override {
        next_ = 0;
        end_ = files;
        error_ = 0;
        std::vector<std::vector<std::uint8_t>> buffers(in_flight, std::vector<std::uint8_t>(bytes, 0x5a));
        for (std::vector<std::uint8_t>& buffer : buffers) {
            ++running_;
            flow(what, buffer);
        }
        while (running_ != 0) {
            client_.wait();
        }
        return error_;
    }

private:
    // Chooses the numbered names, and the name of the data, that other daemons have.
    int choose_names() {
        if (!options_.elsewhere) {
            return 0;
        }
        const auto found = client_.stat(path_).wait();
        if (!found.ok()) {
            return found.error;
        }
        elsewhere_.emplace(client_.view());
        for (std::uint32_t number = 0; numbers_.size() < options_.files; ++number) {
            if (elsewhere_->has_name(found.value.id, bench_name(number))) {
                numbers_.push_back(number);
            }
        }
        std::string name = "data";
        while (!elsewhere_->has_name(found.value.id, name)) {
            name += '+';
        }
        data_path_ = joined(path_, name);
        return 0;
    }
    [[nodiscard]] std::int64_t place_of(std::uint64_t offset) {
        return static_cast<std::int64_t>(elsewhere_ ? elsewhere_->offset_of(data_id_, offset) : offset);
    }
    static int done(const fs::Outcome<std::uint64_t>& moved, std::size_t wanted) noexcept {
        return moved.ok() && moved.value != wanted ? EIO : moved.error;
    }
    Flow flow(Each what, std::span<std::uint8_t> buffer) {
        std::string path;
        while (next_ != end_ && error_ == 0) {
            path = path_;
            path += '/';
            path += bench_name(elsewhere_ ? numbers_[next_] : next_);
            ++next_;
            const int error = what == Each::Stat     ? (co_await client_.stat(path)).error
                              : what == Each::Remove ? (co_await client_.unlink(path)).error
                                                     : 0;
            error_ = error_ != 0 ? error_ : error;
            if (what == Each::Stat || what == Each::Remove) {
                continue;
            }
            const bool creates = what == Each::Create || what == Each::Write;
            const auto opened = co_await client_.open(path, creates ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY);
            if (!opened.ok()) {
                error_ = opened.error;
                break;
            }
            if (what == Each::Write) {
                const auto moved = co_await client_.pwrite(*opened.value, buffer, 0);
                error_ = error_ != 0 ? error_ : done(moved, buffer.size());
            } else if (what == Each::Read) {
                const auto moved = co_await client_.pread(*opened.value, buffer, 0);
                error_ = error_ != 0 ? error_ : done(moved, buffer.size());
            }
            const auto closed = co_await client_.close(*opened.value);
            error_ = error_ != 0 ? error_ : closed.error;
        }
        --running_;
    }

    fs::Client& client_;
    const Options& options_;
    std::optional<Elsewhere> elsewhere_;
    std::vector<std::uint32_t> numbers_;  // of names
    fs::FileId data_id_{};
    std::deque<fs::Buffer> shared_;
    std::deque<std::vector<std::uint8_t>> own_;
    std::string path_;
    std::string data_path_;
    fs::File* data_ = nullptr;
    std::uint32_t next_ = 0;
    std::uint32_t end_ = 0;
    std::uint32_t running_ = 0;
    int error_ = 0;
};

}  // namespace

std::unique_ptr<BenchFiles> bench_files_of_client(fs::Client& client, const std::string& path, const Options& options) {
    return std::make_unique<ClientFiles>(client, path, options);
}

}  // namespace cairn::fstool
