// The time after which a sent packet counts as lost.
#include "rpc/erpc/sent_watch.hpp"

#include <gtest/gtest.h>

#include "tests/support/wire_port.hpp"

namespace cairn::erpc {
namespace {

class SentWatchTest : public testing::Test {
protected:
    SentWatchTest() {
        session->client = std::make_unique<ClientSession>();
        session->client->number_slots(0);
        ClientSlot& sent = session->client->slots[0];
        session->client->move(sent, SlotState::Sent);
        sent.last_sent = start;
        sent.sends = 5;
        watch.note_sent(*session, *session->client, start);
    }
    // Makes the message of another slot wait for a credit while the server has a part of it.
    void starve_another() {
        ClientSlot& slot = session->client->slots[1];
        (void)transfer.answered.see(0);
        slot.transfer = &transfer;
        session->client->move(slot, SlotState::Starved);
    }
    // Returns the time until the slot counts as lost.
    [[nodiscard]] Duration patience() {
        for (Instant now = start; now < start + seconds(2); now = now + microseconds(500)) {
            bool lost = false;
            watch.scan(now, [&lost](Session&, const ClientSlot& slot) { lost = lost || slot.index() == 0; });
            if (lost) {
                return now - start;
            }
        }
        return seconds(2);
    }

    Instant start{1'000'000'000};
    test::WirePort port{"10.0.0.1", 16};
    port::Path* path =
        port.open_path({port.local_address(), net::IpAddress::parse("10.0.0.2").value(), 0xc000, 0}, start);
    SessionTable sessions{4};
    Session* session = sessions.open({path, Qpn{0x100}, Qkey{1}}, 1, start);
    SentWatch watch{sessions};
    ClientTransfer transfer{};
};

TEST_F(SentWatchTest, EachSilenceDoublesTheNext) {
    EXPECT_GE(patience(), session->client->rto(5));
    EXPECT_EQ(session->client->rto(5), session->client->rto(1) * 16);
}

// The server holds memory for a part of their messages, and frees it after a time of silence.
TEST_F(SentWatchTest, ASlotKeepsACreditThatOthersNeedForOneTimeoutOnly) {
    starve_another();
    const Duration waited = patience();
    EXPECT_GE(waited, session->client->rto(1));
    EXPECT_LE(waited, session->client->rto(1) + milliseconds(1));
}

// Otherwise two messages would alternate in sending again, at every first timeout, to a silent server.
TEST_F(SentWatchTest, AMessageThatTheServerHasAPartOfWaitsTwiceAsLongEachTime) {
    starve_another();
    ClientSlot& slot = session->client->slots[0];
    ClientTransfer moving{};
    (void)moving.answered.see(0);
    slot.transfer = &moving;
    session->client->move(slot, SlotState::Moving);
    EXPECT_GE(patience(), session->client->rto(5));
}

}  // namespace
}  // namespace cairn::erpc
