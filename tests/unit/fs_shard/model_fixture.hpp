// A shard and a model get the same calls, and have to give the same answers.
#pragma once

#include <algorithm>

#include "tests/unit/fs_shard/model_calls.hpp"
#include "tests/unit/fs_shard/shard_facts.hpp"

namespace cairn::fs {

// A shard and a model that do the same.
class ModelTest : public testing::Test {
protected:
    struct Pending {
        CallToken token = 0;
        test::ShardClient* client = nullptr;
        std::uint32_t slot = 0;
        std::uint32_t sequence = 0;
        Request request{};
        ModelOutcome wanted{};
    };

    void begin(std::uint64_t seed, Granularity granularity = Granularity::CacheLine) {
        random_ = sim::Random(seed);
        rig_.emplace(granularity);
        EXPECT_EQ(rig_->error_of(clients_[0], SyncRequest{}), 0);
        syncs_ = rig_->shard().counters().syncs;
        const auto root = rig_->ask<AttributesAnswer>(clients_[0], StatRequest{kRoot});
        model_.emplace(kChunk, root.answer.attributes);
        calls_.emplace(random_, *model_);
        named_.clear();
        pending_.clear();
        moments_ = {*model_};
    }
    void issue(test::ShardClient& client, std::uint32_t slot, const Request& request, std::uint32_t sequence) {
        rig_->begin_turn();
        const ModelCall call{client.number, slot, sequence, client.who(), client.data, rig_->wall_ns};
        Pending each{0, &client, slot, sequence, request, model_->run(call, request)};
        each.token = rig_->send_as(client, request, slot, sequence);
        pending_.push_back(std::move(each));
        check_read(pending_.back());
        moments_.push_back(*model_);
    }
    void issue(test::ShardClient& client, std::uint32_t slot, const Request& request) {
        issue(client, slot, request, ++client.sequence);
    }
    void issue_some() {
        for (std::uint32_t slot = 0, calls = static_cast<std::uint32_t>(random_.between(1, 4)); slot != calls; ++slot) {
            test::ShardClient& client = clients_[random_.below(clients_.size())];
            issue(client, slot, calls_->next(client, slot));
        }
    }
    // Checks read bytes at once, since later calls of the turn may overwrite them.
    void check_read(const Pending& each) {
        const auto* const read = std::get_if<ReadRequest>(&each.request);
        if (read != nullptr && each.wanted.error == 0) {
            EXPECT_EQ(
                std::memcmp(each.client->data.data() + read->at, each.wanted.bytes.data(), each.wanted.bytes.size()),
                0);
        }
    }
    // Takes turns until all calls are answered as the model says.
    void answer_all() {
        rig_->end_turn();
        check_answers();
        keep_moments();
    }
    // Keeps the moments that may be durable: on a medium of pages all since the last sync, else the last ones.
    void keep_moments() {
        const bool is_durable = !rig_->store().is_paged() || rig_->shard().counters().syncs != syncs_;
        syncs_ = rig_->shard().counters().syncs;
        moments_.erase(moments_.begin(), is_durable ? moments_.end() : moments_.begin());
        moments_.push_back(*model_);
    }
    void check_answers() {
        for (const Pending& each : pending_) {
            SCOPED_TRACE(name_of(each.request));
            ASSERT_TRUE(rig_->is_answered(each.token));
            if (each.wanted.error != 0) {
                EXPECT_EQ(rig_->error_of(each.token), each.wanted.error);
            } else {
                std::visit([&](const auto& request) { check(each, request); }, each.request);
            }
        }
        pending_.clear();
    }
    void check_attributes(const Pending& each, Attributes got) {
        Attributes wanted = *each.wanted.attributes;
        if (PosixModel::is_unnamed(wanted.id)) {
            const auto [at, is_new] = named_.emplace(wanted.id, got.id);
            if (is_new) {
                model_->name(wanted.id, got.id);
            }
            wanted.id = at->second;
        }
        EXPECT_EQ(got.id, wanted.id);
        EXPECT_EQ(line_of("", got, "", 0, true), line_of("", wanted, "", 0, true));
    }
    void keep_opened(const Pending& each, const FileId& file, std::uint32_t rights, std::uint64_t proof) {
        model_->add_grant(file, each.client->number, {rights, proof});
        calls_->opened({file, each.client->number, {rights, proof}});
    }
    void check_walked(const Pending& each, std::uint32_t rights) {
        const auto told = rig_->told<WalkAnswer>(each.token);
        ASSERT_EQ(told.error, 0);
        EXPECT_TRUE(told.answer.is_home);
        EXPECT_EQ(told.answer.is_opened, each.wanted.is_opened);
        EXPECT_EQ(told.answer.was_made, each.wanted.was_made);
        EXPECT_EQ(told.answer.target, each.wanted.bytes);
        check_attributes(each, told.answer.attributes);
        if (told.answer.is_opened) {
            keep_opened(each, told.answer.attributes.id, rights, told.answer.proof);
        }
    }
    void check(const Pending& each, const WalkRequest& request) { check_walked(each, request.rights); }
    void check(const Pending& each, const CreateRequest& request) { check_walked(each, request.rights); }
    void check(const Pending& each, const OpenRequest& request) {
        const auto told = rig_->told<OpenAnswer>(each.token);
        ASSERT_EQ(told.error, 0);
        check_attributes(each, told.answer.attributes);
        keep_opened(each, request.file, request.rights, told.answer.proof);
    }
    void check_stat(const Pending& each) {
        const auto told = rig_->told<AttributesAnswer>(each.token);
        ASSERT_EQ(told.error, 0);
        check_attributes(each, told.answer.attributes);
    }
    void check(const Pending& each, const StatRequest& /*request*/) { check_stat(each); }
    void check(const Pending& each, const SetAttributesRequest& /*request*/) { check_stat(each); }
    void check(const Pending& each, const LinkRequest& /*request*/) { check_stat(each); }
    void check(const Pending& each, const ReadLinkRequest& /*request*/) {
        const auto told = rig_->told<TextAnswer>(each.token);
        EXPECT_EQ(told.error, 0);
        EXPECT_EQ(told.answer.text, each.wanted.bytes);
    }
    void check_data(const Pending& each) {
        const auto told = rig_->told<DataAnswer>(each.token);
        ASSERT_EQ(told.error, 0);
        EXPECT_EQ(told.answer.bytes, each.wanted.data.bytes);
        EXPECT_EQ(told.answer.offset, each.wanted.data.offset);
        EXPECT_EQ(told.answer.size, each.wanted.data.size);
        EXPECT_EQ(told.answer.generation, each.wanted.data.generation);
        EXPECT_TRUE(told.answer.is_home);
    }
    void check(const Pending& each, const ReadRequest& /*request*/) { check_data(each); }
    void check(const Pending& each, const WriteRequest& /*request*/) { check_data(each); }
    void check(const Pending& each, const ExtendRequest& /*request*/) { check_data(each); }
    void check(const Pending& each, const ReserveRequest& /*request*/) { check_data(each); }
    template <class Other>
    void check(const Pending& each, const Other& /*request*/) {
        EXPECT_EQ(rig_->error_of(each.token), 0);
    }

    void compare(bool with_directories_times) {
        rig_->store().check();
        const auto got = facts_of(rig_->store(), with_directories_times);
        const auto wanted = model_->facts(with_directories_times);
        for (std::size_t i = 0; i != std::max(got.size(), wanted.size()); ++i) {
            ASSERT_EQ(i < got.size() ? got[i] : "nothing", i < wanted.size() ? wanted[i] : "nothing");
        }
    }
    // Compares both as clients see them.
    void compare_as_client() {
        test::ShardClient& client = clients_[0];
        const std::map<FileId, ModelNode> nodes = model_->nodes();
        for (const auto& [id, node] : nodes) {
            const auto told = rig_->ask<AttributesAnswer>(client, StatRequest{id});
            ASSERT_EQ(told.error, 0);
            EXPECT_EQ(line_of("", told.answer.attributes, "", 0, true), line_of("", node.attributes, "", 0, true));
            if (node.is_directory()) {
                EXPECT_EQ(rig_->list(client, id), node.names);
            } else if (node.is_file()) {
                compare_data(client, id, *node.data);
            }
        }
    }
    void compare_data(test::ShardClient& client, const FileId& file, std::string_view wanted) {
        const Grant grant{kMayRead, rig_->ask<OpenAnswer>(client, OpenRequest{file, kMayRead}).answer.proof};
        for (std::uint64_t at = 0; at < wanted.size(); at += kChunk) {
            const auto told = rig_->ask<DataAnswer>(client, ReadRequest{file, grant, at, kChunk, 0});
            const std::string_view part = wanted.substr(at, kChunk);
            ASSERT_EQ(told.answer.bytes, part.size());
            EXPECT_EQ(std::memcmp(client.data.data(), part.data(), part.size()), 0);
        }
        EXPECT_EQ(rig_->error_of(client, CloseRequest{file}), 0);
    }

    sim::Random random_{1};
    std::array<test::ShardClient, 3> clients_{test::ShardClient{1, 0, 0}, test::ShardClient{2, 1000, 1000, {50}},
                                              test::ShardClient{3, 1001, 1001, {50}}};
    std::optional<test::ShardRig> rig_;
    std::optional<PosixModel> model_;
    std::optional<ModelCalls> calls_;
    std::vector<Pending> pending_;
    std::map<FileId, FileId> named_;  // files of the model that the shard has named
    std::uint64_t syncs_ = 0;
    std::vector<PosixModel> moments_;  // the state after each call since the last durable moment
};

}  // namespace cairn::fs
