// Sessions at a real socket, with fake shards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/daemon/meeting_place.hpp"
#include "fs/daemon/sessions.hpp"
#include "fs/shard/shard.hpp"
#include "tests/unit/fs_daemon/door.hpp"
#include "tests/unit/fs_daemon/guest.hpp"

namespace cairn::fs::test {

constexpr SipKey kKey{11, 22};
inline std::vector<std::string>& said() {
    static std::vector<std::string> lines;
    return lines;
}

class SessionsTest : public testing::Test {
protected:
    SessionsTest() {
        said().clear();
        config.welcome.root = kRoot;
        config.welcome.chunk_bytes = 1U << 20U;
        config.welcome.daemons = 2;
        config.welcome.local = {0, 1};
        config.welcome.shape = {2, 4096};
        config.welcome.table = SlotTable(2);
        config.key = kKey;
        config.max_clients = 3;
        config.own_user = ::getuid();
        config.say = [](const std::string& line) { said().push_back(line); };
    }
    void start() {
        sessions = std::make_unique<Sessions>(place.listening_fd(), *news, std::vector<ShardDoor*>{&one, &two}, config);
    }
    [[nodiscard]] Guest guest() const { return Guest(place.socket_path()); }
    void serve(int ms = 3) { EXPECT_TRUE(sessions->serve(-1, milliseconds(ms))); }
    Reply reply(const Guest& from) {
        for (int tries = 0; tries != 1000 && !from.has_news(); ++tries) {
            serve(1);
        }
        return from.read();
    }
    Welcome welcome(const Guest& from, std::uint64_t number = 0) {
        from.say(Hello{number});
        const std::optional<Welcome> got = parse_welcome(reply(from).bytes);
        EXPECT_TRUE(got.has_value());
        return got.value_or(Welcome{});
    }
    void expect_refused(const Guest& from, const std::string& words) {
        const std::optional<Refusal> got = parse_refusal(reply(from).bytes);
        ASSERT_TRUE(got.has_value());
        EXPECT_NE(got->text.find(words), std::string::npos) << got->text;
        serve();
        EXPECT_TRUE(from.has_news());
        EXPECT_TRUE(from.read().bytes.empty());  // it closed the connection
    }
    Reply channel(const Guest& from, std::uint16_t shard) {
        from.say(ChannelRequest{shard});
        return reply(from);
    }
    [[nodiscard]] std::uint64_t count(SessionCounter which) const { return sessions->counters().of(which); }
    void leave(Guest& who) {
        who.leave();
        serve(5);
    }

    const Folder folder;
    MeetingPlace place = MeetingPlace::open(folder / "fs", 0600).value();
    std::unique_ptr<NewsBox> news = NewsBox::create().value();
    Door one{*news, 0};
    Door two{*news, 1};
    SessionConfig config;
    std::unique_ptr<Sessions> sessions;
};

}  // namespace cairn::fs::test
