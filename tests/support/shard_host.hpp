// A shard of the file system on a test's medium, in virtual time, and its clients.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/shard/shard.hpp"
#include "tests/support/recording_medium.hpp"
#include "tests/support/shard_client.hpp"

namespace cairn::test {

// The shard is the only one of the file system, unless `facts` are changed before a restart.
class ShardRig final : public fs::ShardHost {
public:
    static constexpr std::size_t kBytes = 16U << 20U;
    static constexpr std::uint32_t kChunkBytes = fs::StoreShape::kLeastChunkBytes;

    explicit ShardRig(fs::Granularity granularity = fs::Granularity::CacheLine, std::size_t bytes = kBytes)
        : medium_(RecordingMedium::of_zeros(bytes, granularity)) {
        store_ = fs::Store::format(*medium_, {kChunkBytes, 0x1234, 77}).value();
        start();
    }
    // Ends the host and starts it again. Data that is not durable is lost, and unanswered calls never get an answer.
    void restart() { restart(medium_->crash_none()); }
    void restart(RecordingMedium::Image image) {
        const fs::Granularity granularity = medium_->granularity();
        shard_.reset();
        store_.reset();
        medium_ = RecordingMedium::restart(std::move(image), granularity);
        store_ = fs::Store::open(*medium_).value();
        start();
    }

    // Hands a call over in this turn: the client's next one, or one that it has made before.
    fs::CallToken send(ShardClient& client, const fs::Request& request, std::uint32_t slot = 0) {
        return send_as(client, request, slot, ++client.sequence);
    }
    fs::CallToken send_as(ShardClient& client, const fs::Request& request, std::uint32_t slot, std::uint32_t sequence) {
        std::vector<std::uint8_t> bytes(fs::kRequestBytes);
        const fs::RequestHead head{0, fs::RequestHead::kVersion, shard_->number(), sequence, 1};
        bytes.resize(put_request(bytes, head, request));
        return send_bytes(client, bytes, slot);
    }
    fs::CallToken send_bytes(ShardClient& client, std::span<const std::uint8_t> bytes, std::uint32_t slot = 0) {
        begin_turn();
        const fs::CallToken token = ++tokens_;
        shard_->take({token, client.number, slot, client.who(), bytes, client.data});
        return token;
    }
    void begin_turn() {
        if (!std::exchange(in_turn_, true)) {
            wall_ns += 1000;
            shard_->begin_turn({now, wall_ns});
        }
    }
    // Returns true if more can be done at once.
    bool end_turn() {
        begin_turn();
        in_turn_ = false;
        return shard_->end_turn();
    }
    void forget(const ShardClient& client) {
        begin_turn();
        shard_->forget(client.number);
    }
    // Takes turns without calls until nothing is left to do at once.
    void settle() {
        while (end_turn()) {
        }
    }
    // Lets time pass; the host has a turn whenever the shard asks for one.
    void pass(Duration span) {
        const Instant end = now + span;
        for (; shard_->next_deadline() <= end; settle()) {
            now = std::max(now, shard_->next_deadline());
        }
        now = end;
        wall_ns += span.ns;
        settle();
    }

    [[nodiscard]] bool is_answered(fs::CallToken token) const { return answers_.contains(token); }
    // Returns the answer of a call that has been answered (asserted).
    template <class Answer>
    Told<Answer> told(fs::CallToken token) {
        Told<Answer> told;
        told.bytes = std::make_shared<const std::vector<std::uint8_t>>(std::move(answers_.at(token)));
        answers_.erase(token);
        const std::optional<fs::AnswerHead> head = parse_answer(*told.bytes, told.answer);
        CAIRN_ASSERT(head.has_value());
        told.error = head->error;
        return told;
    }
    // Makes a call, and takes turns until it is answered.
    template <class Answer>
    Told<Answer> ask(ShardClient& client, const fs::Request& request) {
        return wait<Answer>(send(client, request));
    }
    // As ask(), but returns the errno only.
    std::int32_t error_of(ShardClient& client, const fs::Request& request) {
        const fs::CallToken token = send(client, request);
        wait_for(token);
        return error_of(token);
    }
    std::int32_t error_of(fs::CallToken token) {
        fs::FieldReader in(answers_.at(token));
        fs::AnswerHead head;
        fs::AnswerHead::fields(in, head);
        CAIRN_ASSERT(!in.failed());
        answers_.erase(token);
        return head.error;
    }
    template <class Answer>
    Told<Answer> wait(fs::CallToken token) {
        wait_for(token);
        return told<Answer>(token);
    }
    void wait_for(fs::CallToken token) {
        end_turn();
        for (int turns = 0; !is_answered(token); ++turns) {
            CAIRN_ASSERT(turns != 1'000'000);
            end_turn();
        }
    }
    // Returns all names of a directory, each once, read page by page with cursors.
    std::map<std::string, fs::FileId> list(ShardClient& client, const fs::FileId& directory) {
        std::map<std::string, fs::FileId> names;
        for (std::uint64_t cursor = 0, is_end = 0; is_end == 0;) {
            const fs::CallToken token = send(client, fs::ListRequest{directory, cursor});
            end_turn();
            fs::ListReader reader(answers_.at(token));
            CAIRN_ASSERT(reader.head()->error == 0);
            while (const std::optional<fs::ListedName> name = reader.next()) {
                cursor = name->cursor;
                const bool is_new = names.emplace(name->name, name->child).second;
                CAIRN_ASSERT(is_new);
            }
            CAIRN_ASSERT(reader.is_whole());
            is_end = reader.facts().is_end ? 1 : 0;
            answers_.erase(token);
        }
        return names;
    }

    [[nodiscard]] fs::Shard& shard() { return *shard_; }
    [[nodiscard]] fs::Store& store() { return *store_; }
    [[nodiscard]] RecordingMedium& medium() { return *medium_; }
    [[nodiscard]] const std::map<fs::CallToken, std::vector<std::uint8_t>>& answers() const { return answers_; }

    fs::ClusterFacts facts{fs::Spread::Even, 1, {1, 2}, {3, 4}, fs::SlotTable(1)};
    Instant now{1'000'000};
    std::optional<std::uint32_t> own_user{};  // takes effect at the next restart
    std::int64_t wall_ns = 1'700'000'000'000'000'000;

private:
    void answer(fs::CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
        CAIRN_ASSERT(!answers_.contains(token) && bytes.size() <= fs::kAnswerBytes);
        answers_[token].assign(bytes.begin(), bytes.end());
    }
    void send(fs::ShardNumber /*to*/, std::span<const std::uint8_t> /*message*/) noexcept override {}
    void start() {
        in_turn_ = false;
        shard_.emplace(*store_, *this, facts, fs::ShardNumber{0}, ++seed_, fs::ShardTime{now, wall_ns}, own_user);
    }

    std::unique_ptr<RecordingMedium> medium_;
    std::unique_ptr<fs::Store> store_;
    std::optional<fs::Shard> shard_;
    std::map<fs::CallToken, std::vector<std::uint8_t>> answers_;
    fs::CallToken tokens_ = 0;
    std::uint64_t seed_ = 0;
    bool in_turn_ = false;
};

}  // namespace cairn::test
