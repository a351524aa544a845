// Requests, answers, lists, greetings, messages between shards and forwarded calls, from any bytes: a parsed message
// means the same when it is written again.
#include "fs/message/answers.hpp"
#include "fs/message/forwarded.hpp"
#include "fs/message/hello.hpp"
#include "fs/message/peer_hello.hpp"
#include "fs/message/peers.hpp"
#include "fs/message/requests.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn;
using Bytes = std::span<const std::uint8_t>;

void require_same(Bytes one, Bytes other) {
    test::require(one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin()));
}

void read_request(Bytes bytes) {
    const std::optional<fs::ParsedRequest> parsed = fs::parse_request(bytes);
    if (parsed) {
        std::vector<std::uint8_t> again(bytes.size());
        test::require(put_request(again, parsed->head, parsed->request) == bytes.size());
        require_same(again, bytes);
        test::require(!name_of(parsed->request).empty());
    }
}

void read_peer_message(Bytes bytes) {
    const std::optional<fs::PeerMessage> parsed = fs::parse_peer_message(bytes);
    if (parsed) {
        std::vector<std::uint8_t> again(bytes.size());
        const auto* const request = std::get_if<fs::PeerRequest>(&parsed->what);
        const std::uint32_t written =
            request != nullptr ? put_peer_request(again, parsed->number, *request)
                               : put_peer_answer(again, parsed->number, std::get<fs::PeerAnswer>(parsed->what));
        test::require(written == bytes.size());
        require_same(again, bytes);
    }
}

template <class Answer>
void read_answer(Bytes bytes) {
    Answer answer;
    const std::optional<fs::AnswerHead> head = fs::parse_answer(bytes, answer);
    if (head) {
        std::vector<std::uint8_t> again(bytes.size());
        test::require((head->error == 0 ? put_answer(again, *head, answer) : put_error(again, *head)) == bytes.size());
        require_same(again, bytes);
    }
}

void read_list(Bytes bytes) {
    fs::ListReader reader(bytes);
    std::vector<std::uint8_t> again(bytes.size() + 64);
    std::vector<fs::ListedName> names;
    while (const std::optional<fs::ListedName> name = reader.next()) {
        names.push_back(*name);
    }
    if (!reader.is_whole() || reader.head()->error != 0) {
        return;
    }
    fs::ListWriter writer(again, *reader.head());
    for (const fs::ListedName& name : names) {
        test::require(writer.add(name));
    }
    again.resize(writer.finish(reader.facts().is_end));
    require_same(again, bytes);
}

template <class Counted>
void read_census(Bytes bytes) {
    fs::CensusReader reader(bytes);
    std::vector<Counted> all;
    while (const auto counted = reader.next<Counted>()) {
        all.push_back(*counted);
    }
    if (!reader.is_whole() || reader.head()->error != 0) {
        return;
    }
    std::vector<std::uint8_t> again(bytes.size());
    fs::CensusWriter writer(again, *reader.head());
    for (const Counted& counted : all) {
        test::require(writer.add(counted));
    }
    again.resize(writer.finish(reader.facts()));
    require_same(again, bytes);
}

template <class Parsed>
void require_again(const std::optional<Parsed>& parsed, Bytes bytes) {
    if (parsed) {
        require_same(bytes_of(*parsed), bytes);
    }
}

// A table is longer than the inputs of fuzzers, so it is appended.
void read_welcome(Bytes bytes) {
    std::vector<std::uint8_t> whole(bytes.begin(), bytes.end());
    const std::vector<std::uint8_t> table = fs::SlotTable(3).bytes();
    whole.insert(whole.end(), table.begin(), table.end());
    require_again(fs::parse_welcome(whole), whole);
    (void)fs::parse_welcome(bytes);
}

void read_greetings(Bytes bytes) {
    require_again(fs::parse_hello(bytes), bytes);
    require_again(fs::parse_channel_request(bytes), bytes);
    if (const std::optional<fs::Refusal> refusal = fs::parse_refusal(bytes); refusal && refusal->text.size() <= 1024) {
        require_same(bytes_of(*refusal), bytes);
    }
    read_welcome(bytes);
}

void read_forwarded(Bytes bytes) {
    if (const std::optional<fs::ParsedForward> parsed = fs::parse_forwarded(bytes)) {
        std::vector<std::uint8_t> again(bytes.size());
        test::require(put_forwarded(again, parsed->call) == bytes.size());
        require_same(again, bytes);
        test::require(parsed->data.bytes <= fs::kMostForwardedData && parsed->data.at == 0);
    }
    for (const fs::DataWay way : {fs::DataWay::None, fs::DataWay::Takes}) {
        if (const auto answer = fs::parse_forwarded_answer(bytes, {way, 100, 0})) {
            test::require(answer->data.size() <= (way == fs::DataWay::Takes ? 100U : 0U));
        }
    }
}

template <class Message>
void read_peer(Bytes bytes) {
    if (const std::optional<Message> parsed = fs::parse_peer<Message>(bytes)) {
        require_same(fs::peer_bytes_of(*parsed), bytes);
    }
}

// A forwarded call contains a request, which arbitrary bytes seldom do.
void read_forwarded_request(Bytes bytes) {
    fs::ForwardedCall call;
    call.client = 1;
    call.request = fs::text_of(bytes.first(std::min<std::size_t>(bytes.size(), 4608)));
    std::vector<std::uint8_t> message(bytes.size() + 64);
    message.resize(put_forwarded(message, call));
    read_forwarded(message);
}

}  // namespace

// The first byte chooses the kind of message that the others are treated as.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    const std::uint8_t kind = input.byte();
    std::vector<std::uint8_t> bytes = input.bytes(size);
    if (kind < 128 && bytes.size() >= 2) {
        bytes[0] = static_cast<std::uint8_t>(bytes[0] % 20);
        bytes[1] = fs::RequestHead::kVersion;
    } else if (kind < 160 && bytes.size() >= 4) {
        std::fill(bytes.begin(), bytes.begin() + 4, std::uint8_t{0});
    } else if (kind < 192 && bytes.size() >= 2) {
        bytes[0] = 1;
        bytes[1] = static_cast<std::uint8_t>(bytes[1] % 12 == 11 ? 0xff : bytes[1] % 12);
    } else if (bytes.size() >= 8) {
        const auto magic = fs::bytes_of(fs::Hello{});
        std::copy(magic.begin(), magic.begin() + 6, bytes.begin());
        bytes[6] = static_cast<std::uint8_t>(bytes[6] % 6);
        bytes[7] = 0;
    }
    read_request(bytes);
    read_peer_message(bytes);
    read_answer<fs::WalkAnswer>(bytes);
    read_answer<fs::AttributesAnswer>(bytes);
    read_answer<fs::OpenAnswer>(bytes);
    read_answer<fs::DataAnswer>(bytes);
    read_answer<fs::TextAnswer>(bytes);
    read_answer<fs::StatFsAnswer>(bytes);
    read_answer<fs::EmptyAnswer>(bytes);
    read_list(bytes);
    read_census<fs::CountedFile>(bytes);
    read_census<fs::CountedName>(bytes);
    read_census<fs::CountedChunk>(bytes);
    read_greetings(bytes);
    read_forwarded(bytes);
    read_forwarded_request(bytes);
    read_peer<fs::PeerGreeting>(bytes);
    read_peer<fs::PeerProof>(bytes);
    read_peer<fs::PeerForget>(bytes);
    return 0;
}
