#include "apps/sim/fs_trace.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

#include "apps/sim/report.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/peers.hpp"
#include "fs/message/requests.hpp"

namespace cairn::simulate {

namespace {

constexpr std::array<std::string_view, std::variant_size_v<fs::PeerRequest>> kPeerRequests{
    "lend attributes", "give attributes back", "names were touched", "stat",
    "count a name",    "cut chunks",           "remove directory",   "place a name",
    "parent",          "set parent",           "turn to move"};

std::string text_of(const fs::FileId& file) {
    return fmt::format("{:x}:{:x}", file.place, file.random);
}

std::string text_of(const fs::Request& request) {
    return std::visit(
        [&](const auto& asked) {
            std::string text(fs::name_of(request));
            if constexpr (requires { asked.name; }) {
                text += fmt::format(" '{}' in {}", asked.name, text_of(asked.directory));
            } else if constexpr (requires { asked.file; }) {
                text += " " + text_of(asked.file);
            }
            if constexpr (requires { asked.to_name; }) {
                text += fmt::format(", to '{}' in {}", asked.to_name, text_of(asked.to_directory));
            }
            if constexpr (requires { asked.offset + asked.bytes; }) {
                text += fmt::format(", {} bytes at {}", asked.bytes, asked.offset);
            }
            if constexpr (requires { asked.what& fs::kSetSize; }) {
                text += (asked.what & fs::kSetSize) != 0 ? fmt::format(", size {}", asked.size) : "";
            }
            return text;
        },
        request);
}

std::string text_of_error(std::int32_t error) {
    switch (error) {
        case 0:
            return "done";
        case fs::kErrorOtherShard:
            return "another shard has it";
        case fs::kErrorOtherGeneration:
            return "the file was cut since";
        case fs::kErrorMalformed:
            return "malformed";
        case fs::kErrorUnreachable:
            return "cannot be reached";
        case fs::kErrorBusy:
            return "busy";
        default:
            return std::strerror(error);
    }
}

std::string text_of_call(std::span<const std::uint8_t> bytes) {
    const std::optional<fs::ParsedRequest> parsed = fs::parse_request(bytes);
    return parsed ? text_of(parsed->request) : "no request";
}

std::string text_of_answer(std::span<const std::uint8_t> bytes) {
    fs::AnswerHead head;
    fs::FieldReader in(bytes);
    fs::AnswerHead::fields(in, head);
    return text_of_error(head.error);
}

std::string text_of_message(std::span<const std::uint8_t> bytes) {
    const std::optional<fs::PeerMessage> message = fs::parse_peer_message(bytes);
    if (!message) {
        return "no message";
    }
    const auto* const request = std::get_if<fs::PeerRequest>(&message->what);
    return request == nullptr ? "answer: " + text_of_error(std::get<fs::PeerAnswer>(message->what).error)
                              : std::string(kPeerRequests[request->index()]);
}

std::string text_of_event(const fs::ClusterEvent& event) {
    switch (event.what) {
        using enum fs::ClusterEvent::What;
        case Call:
            return fmt::format("client {} -> shard {}  call {}, {}", event.client, event.to, event.call,
                               text_of_call(event.bytes));
        case Answer:
            return fmt::format("shard {} answers  call {}, {}", event.from, event.call, text_of_answer(event.bytes));
        case Message:
            return fmt::format("shard {} -> shard {}  {}", event.from, event.to, text_of_message(event.bytes));
        case End:
            return fmt::format("shard {} ends", event.from);
        case PowerLoss:
            return fmt::format("shard {} loses its power", event.from);
        case Restart:
            return fmt::format("shard {} is back", event.from);
        case Gone:
            return fmt::format("client {} is gone", event.client);
    }
    return {};
}

}  // namespace

std::string trace_line(const fs::ClusterEvent& event) {
    return fmt::format("{:>12.6f} ms  {}", microseconds_of(event.at - Instant{}) / 1e3, text_of_event(event));
}

}  // namespace cairn::simulate
