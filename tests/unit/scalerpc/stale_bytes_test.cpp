// Bytes that clients leave in blocks that others get next: they are neither read nor executed.
#include <algorithm>

#include "tests/unit/scalerpc/stranger.hpp"

namespace cairn::scalerpc {
namespace {

constexpr std::uint8_t kSecret = 0xa5;
constexpr std::uint32_t kClaimed = 200;

class ScalerpcStaleBytes : public ScalerpcStranger {
protected:
    // Fills all places of the pools with honest clients' requests, all of one byte except for their tags.
    void leave_secrets() {
        filler = kSecret;
        for (int round = 0; round < 4; ++round) {
            for (std::size_t i = 0; i < sessions.size(); ++i) {
                post(i, kClaimed);
            }
            run_all(milliseconds(4));
        }
        ASSERT_EQ(count(CallStatus::Ok), results.size());
        filler.reset();
    }
    // Returns a trailer without the request that it announces.
    [[nodiscard]] std::vector<std::uint8_t> bare_trailer(std::uint32_t sequence, std::uint32_t epoch) const {
        std::vector<std::uint8_t> block(shape.bytes);
        (void)put_request({sequence, kEcho, 0, std::vector<std::uint8_t>(kClaimed)}, epoch, block);
        return {block.end() - sizeof(RawTrailer), block.end()};
    }
    void write_bare_trailer(std::uint32_t sequence) {
        stranger.write(bare_trailer(sequence, grant.epoch),
                       grant.grant.address + shape.end_of(sequence) - sizeof(RawTrailer), grant.grant.rkey);
        run_all(milliseconds(1));
    }
    // Returns how many bytes of others the stranger has got in an answer.
    [[nodiscard]] std::size_t foreign_bytes(std::uint32_t sequence) {
        const std::optional<Answer> answer = stranger.answer(shape, sequence);
        EXPECT_TRUE(answer.has_value());
        return answer ? static_cast<std::size_t>(std::count(answer->payload.begin(), answer->payload.end(), kSecret))
                      : 0;
    }
};

TEST_F(ScalerpcStaleBytes, ARequestIsNoLongerThanWhatWasReadOfIt) {
    meet(small(32), 20);
    leave_secrets();
    const std::vector<std::uint8_t> trailer = bare_trailer(0, kStaged);
    std::copy(trailer.begin(), trailer.end(), staged(0).end() - sizeof(RawTrailer));
    Entry short_one = entry(0, 1);
    short_one.longest = sizeof(RawTrailer);
    stranger.write_entry(short_one);
    run_all(milliseconds(3));
    EXPECT_EQ(breaches(Breach::BadFetch), 1U);
    EXPECT_TRUE(stranger.ended);
    EXPECT_FALSE(stranger.answer(shape, 0).has_value());
    expect_service();
    check_clean_pools();
}

TEST_F(ScalerpcStaleBytes, ATrailerThatIsWrittenAloneTellsNothingOfOthers) {
    meet(small(32), 20);
    leave_secrets();
    enter_slice();
    for (std::uint32_t sequence = 1; sequence <= shape.blocks; ++sequence) {
        write_bare_trailer(sequence);
        EXPECT_EQ(foreign_bytes(sequence), 0U) << sequence;
    }
    check_clean_pools();
}

// A host acknowledges no answer, and has not agreed to the end of its session. Another client asks for an answer that
// needs the same memory.
TEST_F(ScalerpcStaleBytes, AHostThatAcknowledgesNothingGetsNoBytesOfOthersAfterItsSession) {
    constexpr std::uint32_t kUnacknowledged = 900;
    EndpointConfig config = small(32);
    config.shape = {1024, 4};
    config.long_answers = 1;
    meet(config, 1);
    enter_slice();
    std::vector<std::uint8_t> payload(kUnacknowledged);
    const std::uint64_t tag = ++tags;
    std::memcpy(payload.data(), &tag, sizeof(tag));
    write_request({1, kEcho, 0, payload}, grant.epoch);
    stranger.worker->turn(now);
    server->port.fate = [](std::uint64_t) { return 0; };
    server->turn(now);
    server->port.fate = [](std::uint64_t) { return 1; };
    server->endpoint->disconnect(server->endpoint->slices().groups()[0].members.back(), now);
    filler = kSecret;
    post(0, kUnacknowledged);
    run(milliseconds(20));
    run_all(milliseconds(5));
    EXPECT_TRUE(stranger.ended);
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    EXPECT_EQ(std::count(stranger.memory().begin(), stranger.memory().end(), kSecret), 0);
}

// A client without groups keeps its place as long as it is there.
TEST_F(ScalerpcStaleBytes, AFormerClientsPlaceTellsNothingOfIt) {
    EndpointConfig config = small(1);
    config.features = {false, false, false, false, true, false};
    shape = config.shape;
    begin(config, 1);
    filler = kSecret;
    for (std::uint32_t i = 0; i < shape.blocks; ++i) {
        post(0, kClaimed);
    }
    run(milliseconds(2));
    ASSERT_EQ(count(CallStatus::Ok), shape.blocks);
    client->endpoint->disconnect(sessions[0], now);
    run(milliseconds(200));
    check_clean_pools();
    stranger.port.join(server->port);
    server->port.join(stranger.port);
    stranger.ask(shape, now);
    run_all(milliseconds(3));
    grant = stranger.control();
    ASSERT_EQ(grant.kind, News::Kind::Grant);
    for (std::uint32_t sequence = 0; sequence < shape.blocks; ++sequence) {
        write_bare_trailer(sequence);
        EXPECT_EQ(foreign_bytes(sequence), 0U) << sequence;
    }
}

// A client leaves requests for the slices of the next client in its place: another one in each block.
TEST_F(ScalerpcStaleBytes, WhatALeavingClientWroteIsNobodysRequest) {
    outlast_slice(seconds(1), milliseconds(5));
    ASSERT_EQ(stranger.control().kind, News::Kind::Notice);
    const std::array<std::uint8_t, 16> payload{};
    for (std::uint32_t sequence = 1; sequence <= shape.blocks; ++sequence) {
        write_request({sequence, kEcho, 0, payload}, grant.epoch + 2 * sequence);
    }
    run_all(microseconds(50));
    stranger.write_entry(entry(1, 0, grant.epoch));
    run_all(microseconds(50));
    check_clean_pools();
    again = false;
    run_all(milliseconds(5));
    check();
}

// No record says where it lies.
TEST_F(ScalerpcStaleBytes, APartOfARequestGoesWithItsClient) {
    meet(small(32), 20);
    enter_slice();
    const std::vector<std::uint8_t> part(100, kSecret);
    stranger.write(part, grant.grant.address + shape.bytes, grant.grant.rkey);
    run_all(microseconds(50));
    stranger.port.fate = [](std::uint64_t) { return 0; };
    run_all(seconds(3));
    EXPECT_EQ(counted().links.peers_lost, 1U);
    check_clean_pools();
}

TEST_F(ScalerpcStaleBytes, APartOfARequestGoesWithItsKey) {
    EndpointConfig config = small(32);
    config.notice_timeout = milliseconds(2);
    meet(config, 20);
    enter_slice();
    const std::vector<std::uint8_t> part(100, kSecret);
    stranger.write(part, grant.grant.address + shape.bytes, grant.grant.rkey);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
    }
    run_all(milliseconds(10));
    again = false;
    run_all(milliseconds(5));
    EXPECT_EQ(counted().keys_ended, 1U);
    check();
}

// Neighbouring requests are one WRITE, including the bytes between them.
TEST_F(ScalerpcStaleBytes, WhatLiesBetweenRequestsIsNoFormerRequest) {
    begin(small(32), 20);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        for (std::uint32_t call = 0; call < 4; ++call) {
            post(i, call % 2 == 0 ? 200 : 8);
        }
    }
    run(milliseconds(5));
    again = false;
    run(milliseconds(5));
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        for (std::uint32_t call = 0; call < 4; ++call) {
            post(i, 8);
        }
    }
    run(milliseconds(5));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        client->endpoint->disconnect(sessions[i], now);
    }
    check_clean_pools();
    check();
}

}  // namespace
}  // namespace cairn::scalerpc
