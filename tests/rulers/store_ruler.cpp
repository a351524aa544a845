// Measures a store of the file system alone, on one thread: neither messages nor clients.
//
//   store_ruler PATH FILES
//
// Makes a store of fake persistent memory at PATH, which must not exist, as in /dev/shm. Creates FILES files: a name,
// attributes and a client's answer, each operation with a commit of its own, then 16 with one commit. Looks them up,
// writes a block of each, 1 MiB chunks and 47,008-byte pieces, and reads them. Opens the store again, and removes the
// files. Prints one JSON object, and removes PATH.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "fs/medium/backends.hpp"
#include "fs/store/store.hpp"

namespace {

using namespace cairn;
using namespace cairn::fs;

constexpr std::uint32_t kMiB = 1U << 20U;
constexpr std::uint32_t kPiece = 47'008;  // as in ior's hard runs
constexpr FileId kDirectory{1, 1};

class Ruler {
public:
    Ruler(std::string path, std::uint64_t files)
        : path_(std::move(path)),
          files_(files),
          medium_(open_pmem(path_, bytes_for(files), PmemChoice{true}).value()),
          store_(Store::format(*medium_, {kMiB, 7, 9}).value()),
          data_(kMiB, 0x5a) {}
    ~Ruler() {
        store_.reset();
        medium_.reset();
        ::unlink(path_.c_str());
    }
    Ruler(const Ruler&) = delete;
    Ruler& operator=(const Ruler&) = delete;

    std::string measure() {
        std::string results;
        const auto add = [&results](const char* name, double value) {
            results += fmt::format("{}\"{}\": {:.1f}", results.empty() ? "" : ", ", name, value);
        };
        add("create_k_s", thousands(files_ / 2, [this](std::uint64_t i) { create(i, 1); }));
        add("create_16_k_s", thousands(files_ - files_ / 2, [this](std::uint64_t i) { create(files_ / 2 + i, 16); }));
        store_->commit();
        add("lookup_k_s", thousands(files_, [this](std::uint64_t i) { look_up(i); }));
        add("write_block_k_s", thousands(files_, [this](std::uint64_t i) { write({file(i), 0}, 0, 3901); }));
        add("read_block_k_s", thousands(files_, [this](std::uint64_t i) { read({file(i), 0}, 0, 3901); }));
        const auto chunk = [](std::uint64_t i) { return ChunkId{{9, 9}, static_cast<std::uint32_t>(i % 64)}; };
        add("write_mib_s", 1e3 * thousands(1000, [&](std::uint64_t i) { write(chunk(i), 0, kMiB); }));
        add("read_mib_s", 1e3 * thousands(1000, [&](std::uint64_t i) { read(chunk(i), 0, kMiB); }));
        const auto offset = [](std::uint64_t i) { return static_cast<std::uint32_t>(i % 22 * kPiece); };
        const double hard = 1e3 * kPiece / kMiB;
        add("write_hard_mib_s", hard * thousands(20'000, [&](std::uint64_t i) {
                                    write({{8, 8}, static_cast<std::uint32_t>(i / 22 % 64)}, offset(i), kPiece);
                                }));
        add("read_hard_mib_s", hard * thousands(20'000, [&](std::uint64_t i) {
                                   read({{8, 8}, static_cast<std::uint32_t>(i / 22 % 64)}, offset(i), kPiece);
                               }));
        add("log_units", store_->use().log_units);
        add("restart_s", seconds_of([this] { reopen(); }));
        add("remove_k_s", thousands(files_, [this](std::uint64_t i) { remove(i); }));
        return fmt::format("{{\"files\": {}, {}}}", files_, results);
    }

private:
    static std::size_t bytes_for(std::uint64_t files) {
        const std::uint64_t bytes = files * 6000 + (std::uint64_t{512} << 20U);
        return (bytes + (2U << 20U) - 1) >> 21U << 21U;
    }
    static double seconds_of(const std::function<void()>& run) {
        const auto begin = std::chrono::steady_clock::now();
        run();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    // Returns thousands of operations per second.
    static double thousands(std::uint64_t count, const std::function<void(std::uint64_t)>& run) {
        return static_cast<double>(count) / 1e3 / seconds_of([&] {
                   for (std::uint64_t i = 0; i != count; ++i) {
                       run(i);
                   }
               });
    }
    [[nodiscard]] static FileId file(std::uint64_t i) { return {i, 77}; }
    [[nodiscard]] static std::string name(std::uint64_t i) { return fmt::format("file.mdtest.0.{}", i); }
    void apply(Change& change, Need need, std::uint32_t together) {
        if (!store_->apply(change, need)) {
            fmt::print(stderr, "store_ruler: the store is full\n");
            std::exit(1);
        }
        if (++operations_ % together == 0) {
            store_->commit();
            (void)store_->clean(together * 2048);
        }
    }
    void create(std::uint64_t i, std::uint32_t together) {
        const std::string called = name(i);
        Inode inode;
        inode.id = file(i);
        inode.mode = 0100644;
        inode.links = 1;
        inode.modified_ns = inode.changed_ns = inode.accessed_ns = inode.born_ns = static_cast<std::int64_t>(i);
        Change change;
        change.put(inode);
        change.put(Dentry{kDirectory, inode.id, inode.mode, called});
        change.put(AnswerRecord{{1, static_cast<std::uint32_t>(i % 32)}, static_cast<std::uint32_t>(i), 0});
        apply(change, Need::Grows, together);
    }
    void look_up(std::uint64_t i) {
        const DentryState* const dentry = store_->tables().dentry(kDirectory, name(i));
        if (dentry == nullptr || store_->tables().inode(dentry->child) == nullptr) {
            std::abort();
        }
    }
    void remove(std::uint64_t i) {
        const std::string called = name(i);
        Change change;
        change.put(Gone{Gone::Name{kDirectory, called}});
        change.put(Gone{file(i)});
        change.put(Gone{ChunkId{file(i), 0}});
        apply(change, Need::Shrinks, 16);
    }
    void write(const ChunkId& chunk, std::uint32_t offset, std::uint32_t bytes) {
        auto pending = store_->begin_write(chunk, 0, offset, bytes);
        if (!pending) {
            std::abort();
        }
        store_->data().fill(*pending, 0, std::span(data_).first(bytes));
        Change change;
        store_->finish_write(*pending, change);
        apply(change, Need::Grows, 1);
    }
    void read(const ChunkId& chunk, std::uint32_t offset, std::uint32_t bytes) {
        if (!store_->read(chunk, offset, std::span(data_).first(bytes))) {
            std::abort();
        }
    }
    void reopen() {
        store_.reset();
        store_ = Store::open(*medium_).value();
    }

    std::string path_;
    std::uint64_t files_;
    std::unique_ptr<Medium> medium_;
    std::unique_ptr<Store> store_;
    std::vector<std::uint8_t> data_;
    std::uint64_t operations_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t files = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
    if (files < 100 || ::access(argv[1], F_OK) == 0) {
        fmt::print(stderr, "usage: store_ruler PATH FILES; PATH does not exist, FILES are 100 or more\n");
        return 2;
    }
    fmt::print("{}\n", Ruler(argv[1], files).measure());
    return 0;
}
