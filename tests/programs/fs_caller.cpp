// Calls libcairnfs as its input says, line by line, so that tests of whole programs can be written in Python.
//
//     fs_caller SOCKET TIMEOUT_MS
//
// A line is a name and arguments; paths are percent-encoded. The answer is a line with the library's result, and words.
// The bytes follow the line "pwrite FILE OFFSET BYTES", and the answer to "pread FILE OFFSET BYTES". A file is a number
// that "open" has returned.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fs/client/cairnfs.h"

namespace {

class Caller {
public:
    explicit Caller(cairnfs* fs) : fs_(fs) {}

    // Returns false if there is no such call.
    bool run(const std::string& line) {
        words_ = std::istringstream(line);
        std::string name;
        words_ >> name;
        const auto call = calls_.find(name);
        if (call == calls_.end()) {
            return false;
        }
        more_.clear();
        data_.clear();
        const std::int64_t result = call->second();
        std::cout << result << more_ << '\n';
        std::cout.write(data_.data(), static_cast<std::streamsize>(data_.size()));
        std::cout.flush();
        return true;
    }

private:
    std::string path() {
        std::string word;
        words_ >> word;
        std::string text;
        for (std::size_t i = 0; i < word.size(); ++i) {
            const bool is_coded = word[i] == '%' && i + 2 < word.size();
            text += is_coded ? static_cast<char>(std::stoi(word.substr(i + 1, 2), nullptr, 16)) : word[i];
            i += is_coded ? 2 : 0;
        }
        return text;
    }
    std::int64_t number() {
        std::int64_t value = 0;
        words_ >> value;
        return value;
    }
    cairnfs_file* file() { return files_.at(number()); }
    void say(std::int64_t word) { more_ += ' ' + std::to_string(word); }
    int say_stat(int result, const struct stat& facts) {
        say(static_cast<std::int64_t>(facts.st_mode));
        say(static_cast<std::int64_t>(facts.st_nlink));
        say(facts.st_uid);
        say(facts.st_gid);
        say(facts.st_size);
        say(facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec);
        return result;
    }

    std::int64_t open() {
        const std::string name = path();
        const auto flags = static_cast<int>(number());
        cairnfs_file* made = nullptr;
        const int error = cairnfs_open(fs_, name.c_str(), flags, static_cast<mode_t>(number()), &made);
        if (error != 0) {
            return error;
        }
        files_[++opened_] = made;
        return opened_;
    }
    std::int64_t close() {
        const std::int64_t which = number();
        cairnfs_file* const closed = files_.at(which);
        files_.erase(which);
        return cairnfs_close(fs_, closed);
    }
    std::int64_t pread() {
        cairnfs_file* const from = file();
        const std::int64_t offset = number();
        data_.resize(static_cast<std::size_t>(number()));
        const ssize_t bytes = cairnfs_pread(fs_, from, data_.data(), data_.size(), offset);
        data_.resize(static_cast<std::size_t>(bytes < 0 ? 0 : bytes));
        return bytes;
    }
    std::int64_t pwrite() {
        cairnfs_file* const to = file();
        const std::int64_t offset = number();
        std::vector<char> bytes(static_cast<std::size_t>(number()));
        std::cin.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return cairnfs_pwrite(fs_, to, bytes.data(), bytes.size(), offset);
    }
    std::int64_t list() {
        cairnfs_dir* directory = nullptr;
        int result = cairnfs_opendir(fs_, path().c_str(), &directory);
        if (result != 0) {
            return result;
        }
        cairnfs_entry entry{};
        while ((result = cairnfs_readdir(fs_, directory, &entry)) == 1) {
            more_ += ' ';
            for (const char* at = entry.name; *at != 0; ++at) {
                std::array<char, 4> coded{};
                std::snprintf(coded.data(), coded.size(), "%02x", static_cast<unsigned char>(*at));
                more_ += coded.data();
            }
        }
        const int closed = cairnfs_closedir(fs_, directory);
        return result != 0 ? result : closed;
    }
    std::int64_t statfs() {
        struct statvfs facts {};
        const int result = cairnfs_statfs(fs_, &facts);
        say(static_cast<std::int64_t>(facts.f_blocks * facts.f_frsize));
        say(static_cast<std::int64_t>(facts.f_bfree * facts.f_frsize));
        return result;
    }
    std::int64_t readlink() {
        data_.resize(4096);
        const ssize_t bytes = cairnfs_readlink(fs_, path().c_str(), data_.data(), data_.size());
        data_.resize(static_cast<std::size_t>(bytes < 0 ? 0 : bytes));
        return bytes;
    }
    std::int64_t utimens() {
        const std::string name = path();
        const std::int64_t accessed = number();
        const std::array times{timespec{accessed, 0}, timespec{number(), 5}};
        return cairnfs_utimens(fs_, name.c_str(), times.data(), 0);
    }
    int two_paths(int (*call)(cairnfs*, const char*, const char*)) {
        const std::string one = path();
        const std::string other = path();
        return call(fs_, one.c_str(), other.c_str());
    }

    cairnfs* fs_;
    std::istringstream words_{};
    std::string more_{};
    std::vector<char> data_{};
    std::map<std::int64_t, cairnfs_file*> files_{};
    std::int64_t opened_ = 0;
    struct stat facts_ {};
    const std::map<std::string, std::function<std::int64_t()>> calls_{
        {"open", [this] { return open(); }},
        {"close", [this] { return close(); }},
        {"pread", [this] { return pread(); }},
        {"pwrite", [this] { return pwrite(); }},
        {"list", [this] { return list(); }},
        {"statfs", [this] { return statfs(); }},
        {"readlink", [this] { return readlink(); }},
        {"utimens", [this] { return utimens(); }},
        {"fstat", [this] { return say_stat(cairnfs_fstat(fs_, file(), &facts_), facts_); }},
        {"stat", [this] { return say_stat(cairnfs_stat(fs_, path().c_str(), &facts_), facts_); }},
        {"lstat", [this] { return say_stat(cairnfs_lstat(fs_, path().c_str(), &facts_), facts_); }},
        {"fsync", [this] { return cairnfs_fsync(fs_, file()); }},
        {"unlink", [this] { return cairnfs_unlink(fs_, path().c_str()); }},
        {"rmdir", [this] { return cairnfs_rmdir(fs_, path().c_str()); }},
        {"link", [this] { return two_paths(cairnfs_link); }},
        {"symlink", [this] { return two_paths(cairnfs_symlink); }},
        {"rename",
         [this] {
             return two_paths(
                 [](cairnfs* fs, const char* from, const char* to) { return cairnfs_rename(fs, from, to, 0); });
         }},
        {"mkdir",
         [this] {
             const std::string name = path();
             return cairnfs_mkdir(fs_, name.c_str(), static_cast<mode_t>(number()));
         }},
        {"chmod",
         [this] {
             const std::string name = path();
             return cairnfs_chmod(fs_, name.c_str(), static_cast<mode_t>(number()));
         }},
        {"chown",
         [this] {
             const std::string name = path();
             const auto uid = static_cast<uid_t>(number());
             return cairnfs_chown(fs_, name.c_str(), uid, static_cast<gid_t>(number()));
         }},
        {"truncate",
         [this] {
             const std::string name = path();
             return cairnfs_truncate(fs_, name.c_str(), number());
         }},
    };
};

}  // namespace

int main(int argc, char** argv) {
    cairnfs* fs = nullptr;
    std::array<char, 256> why{};
    if (argc != 3 || cairnfs_connect(argv[1], std::atoi(argv[2]), &fs, why.data(), why.size()) != 0) {
        std::cerr << why.data() << '\n';
        return 2;
    }
    std::cout << "ready" << std::endl;
    Caller caller(fs);
    for (std::string line; std::getline(std::cin, line);) {
        if (!caller.run(line)) {
            std::cerr << "no call: " << line << '\n';
            return 2;
        }
    }
    cairnfs_disconnect(fs);
    return 0;
}
