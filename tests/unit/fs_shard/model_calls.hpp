// Random calls of few clients for few files, so that they interfere.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lib/sim/random.hpp"
#include "tests/unit/fs_shard/posix_model.hpp"
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {

class ModelCalls {
public:
    static constexpr std::uint32_t kAreaBytes = 64U << 10U;  // the area of a slot
    static constexpr std::uint64_t kLongestFile = 3 * std::uint64_t{kChunk};

    ModelCalls(sim::Random& random, const PosixModel& model) : random_(random), model_(model) {}

    // An open file of a client, with its grants.
    struct Opened {
        FileId file{};
        std::uint64_t client = 0;
        Grant grant{};
    };
    void opened(const Opened& handle) {
        if (handles_.size() == kMostHandles) {
            handles_.erase(handles_.begin());
        }
        if (handle.grant.rights != 0) {
            handles_.push_back(handle);
        }
    }

    // Returns a call of a client, with bytes in the area of its slot.
    Request next(test::ShardClient& client, std::uint32_t slot) {
        at_ = slot * kAreaBytes;
        switch (random_.below(20)) {
            case 0:
                return WalkRequest{some_directory(), some_rights(), some_name()};
            case 1:
                return StatRequest{some_file()};
            case 2:
                return CloseRequest{some_handle(client).file};
            case 3:
                return RemoveRequest{some_directory(), random_.below(2) == 0, some_name()};
            case 4:
            case 5:
                return RenameRequest{some_directory(), some_directory(), random_.below(4) == 0, some_name(),
                                     some_name()};
            case 6:
            case 7:
                return OpenRequest{some_file(), some_rights()};
            default:
                return (this->*kOthers[random_.below(kOthers.size())])(client);
        }
    }

private:
    static constexpr std::size_t kMostHandles = 24;

    [[nodiscard]] std::string_view some_name() {
        static constexpr std::array<std::string_view, 6> kNames{"a", "b", "c", "d", "e", ""};
        return kNames[random_.below(100) == 0 ? 5 : random_.below(5)];
    }
    [[nodiscard]] std::uint32_t some_rights() {
        static constexpr std::array<std::uint32_t, 8> kRights{0, 4, 4, 2, 6, 6, 6, 6};
        return random_.below(50) == 0 ? 1 : kRights[random_.below(kRights.size())];
    }
    [[nodiscard]] std::uint32_t some_mode() {
        static constexpr std::array<std::uint32_t, 8> kModes{0777, 0755, 0700, 0600, 0666, 03777, 02775, 06755};
        return kModes[random_.below(kModes.size())];
    }
    // Returns one of the objects that satisfy a condition; sometimes one that does not, or none.
    template <class Wanted>
    [[nodiscard]] FileId some(Wanted wanted) {
        std::vector<FileId> all;
        for (const auto& [id, node] : model_.nodes()) {
            if (!PosixModel::is_unnamed(id) && (wanted(node) || random_.below(30) == 0)) {
                all.push_back(id);
            }
        }
        return all.empty() || random_.below(60) == 0 ? FileId{7, 7} : all[random_.below(all.size())];
    }
    [[nodiscard]] FileId some_directory() {
        return random_.below(3) == 0 ? kRoot : some([](const ModelNode& node) { return node.is_directory(); });
    }
    [[nodiscard]] FileId some_file() {
        return some([](const ModelNode& node) { return node.is_file(); });
    }
    // Returns one of the client's handles with these rights, or sometimes another one.
    [[nodiscard]] Opened some_handle(const test::ShardClient& client, std::uint32_t rights = 0) {
        std::vector<Opened> all;
        for (const Opened& each : handles_) {
            const bool is_fit = each.client == client.number && (each.grant.rights & rights) == rights &&
                                model_.nodes().contains(each.file);
            if (is_fit || random_.below(60) == 0) {
                all.push_back(each);
            }
        }
        return all.empty() ? Opened{some_file(), client.number, {6, 1}} : all[random_.below(all.size())];
    }
    [[nodiscard]] std::uint64_t generation_of(const FileId& file) {
        const auto found = model_.nodes().find(file);
        const std::uint64_t generation = found == model_.nodes().end() ? 0 : found->second.attributes.generation;
        return random_.below(12) == 0 ? generation + random_.below(3) - 1 : generation;
    }
    Request create(test::ShardClient& /*client*/) {
        const std::uint64_t kind = random_.below(8);
        CreateRequest request{
            some_directory(), 0100000U | some_mode(), some_rights() & 6U, random_.below(2) == 0, some_name(), {}};
        if (kind < 2) {
            request.mode = 0040000U | some_mode();
        } else if (kind == 2) {
            request.mode = 0120777;
            request.target = "where/it/points";
        }
        return request;
    }
    // Chooses a piece within a chunk, mostly a short one.
    void choose_piece() {
        const std::uint64_t chunk = random_.below(kLongestFile / kChunk);
        const std::uint64_t in_chunk = random_.below(3) == 0 ? random_.below(kChunk) : random_.below(10'000);
        const std::uint64_t most = random_.below(4) == 0 ? kChunk : 6'000;
        offset_ = chunk * kChunk + in_chunk;
        bytes_ = static_cast<std::uint32_t>(1 + random_.below(std::min<std::uint64_t>(most, kChunk - in_chunk)));
        if (random_.below(60) == 0) {
            bytes_ = random_.below(2) == 0 ? 0 : kChunk + 1;
        }
    }
    Request read(test::ShardClient& client) {
        const Opened handle = some_handle(client, kMayRead);
        choose_piece();
        return ReadRequest{handle.file, handle.grant, offset_, bytes_, at_};
    }
    Request write(test::ShardClient& client) {
        const Opened handle = some_handle(client, kMayWrite);
        choose_piece();
        const auto from = client.data.begin() + at_;
        std::fill(from, from + kAreaBytes, static_cast<std::uint8_t>(random_.below(256)));
        for (int i = 0; i != 64; ++i) {
            from[static_cast<std::ptrdiff_t>(random_.below(kAreaBytes))] = static_cast<std::uint8_t>(random_.next());
        }
        return WriteRequest{handle.file, handle.grant, offset_, generation_of(handle.file), bytes_, at_};
    }
    Request some_size(test::ShardClient& client) {
        const Opened handle = some_handle(client, kMayWrite);
        if (random_.below(2) == 0) {
            return ExtendRequest{handle.file, handle.grant, random_.below(kLongestFile), generation_of(handle.file)};
        }
        const auto found = model_.nodes().find(handle.file);
        const std::uint64_t size = found == model_.nodes().end() ? 0 : found->second.attributes.size;
        const std::uint64_t left = kLongestFile - std::min(size, kLongestFile);
        return ReserveRequest{handle.file, handle.grant, random_.below(std::min<std::uint64_t>(left, 5000) + 1)};
    }
    Request set_attributes(test::ShardClient& client) {
        SetAttributesRequest request{random_.below(5) == 0 ? kRoot : some([](const ModelNode&) { return true; })};
        request.what = 1U << random_.below(7) | (random_.below(4) == 0 ? 1U << random_.below(7) : 0U);
        request.what = random_.below(30) == 0 ? 0 : request.what;
        if (request.file == kRoot) {
            request.what &= kSetTimesNow | kSetAccessed | kSetModified;
        }
        request.mode = some_mode();
        request.uid = random_.below(2) == 0 ? client.uid : 1000 + static_cast<std::uint32_t>(random_.below(2));
        request.gid = random_.below(2) == 0 ? 50 : 1000 + static_cast<std::uint32_t>(random_.below(2));
        request.size = random_.below(3) == 0 ? 0 : random_.below(kLongestFile);
        request.accessed_ns = static_cast<std::int64_t>(random_.below(1000));
        request.modified_ns = static_cast<std::int64_t>(random_.below(1000));
        if (random_.below(2) == 0) {
            const Opened handle = some_handle(client, kMayWrite);
            request.file = handle.file;
            request.grant = handle.grant;
        }
        return request;
    }
    Request link(test::ShardClient& /*client*/) {
        const FileId file =
            random_.below(6) == 0 ? some([](const ModelNode& node) { return node.is_link(); }) : some_file();
        if (random_.below(3) == 0) {
            return ReadLinkRequest{file};
        }
        return LinkRequest{file, some_directory(), some_name()};
    }

    static constexpr std::array kOthers{&ModelCalls::create, &ModelCalls::create,         &ModelCalls::create,
                                        &ModelCalls::read,   &ModelCalls::read,           &ModelCalls::write,
                                        &ModelCalls::write,  &ModelCalls::write,          &ModelCalls::some_size,
                                        &ModelCalls::link,   &ModelCalls::set_attributes, &ModelCalls::set_attributes};

    sim::Random& random_;
    const PosixModel& model_;
    std::vector<Opened> handles_;
    std::uint32_t at_ = 0;
    std::uint64_t offset_ = 0;
    std::uint32_t bytes_ = 0;
};

}  // namespace cairn::fs
