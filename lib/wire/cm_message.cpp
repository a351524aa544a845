#include "lib/wire/cm_message.hpp"

namespace cairn::wire {

namespace {

// Returns the message of the variant that `attribute` names, or the reason why there is none.
template <class... Messages>
ParsedMad<CmMessage> parse_message(std::uint16_t attribute, const std::uint8_t* at,
                                   std::variant<Messages...>*) noexcept {
    ParsedMad<CmMessage> result = MadDrop::UnknownAttribute;
    const auto take = [&]<class Message>(Message*) noexcept {
        if (attribute != Message::kAttribute) {
            return false;
        }
        const ParsedMad<Message> parsed = Message::parse(read_raw<typename Message::Raw>(at));
        result = parsed.ok() ? ParsedMad<CmMessage>(CmMessage(parsed.value())) : ParsedMad<CmMessage>(parsed.reason());
        return true;
    };
    (void)(take(static_cast<Messages*>(nullptr)) || ...);
    return result;
}

}  // namespace

ParsedMad<CmMad> CmMad::parse(std::span<const std::uint8_t> bytes) noexcept {
    if (bytes.size() != kMadBytes) {
        return MadDrop::BadSize;
    }
    const ParsedMad<MadHeader> header = MadHeader::parse(read_raw<RawMadHeader>(bytes.data()));
    if (!header.ok()) {
        return header.reason();
    }
    const ParsedMad<CmMessage> message =
        parse_message(header.value().attribute, bytes.data() + MadHeader::kBytes, static_cast<CmMessage*>(nullptr));
    if (!message.ok()) {
        return message.reason();
    }
    return CmMad{header.value().transaction, message.value()};
}

MadBytes CmMad::bytes() const noexcept {
    MadBytes out;
    std::visit(
        [&]<class Message>(const Message& held) noexcept {
            emit_at(out.data(), MadHeader{transaction, Message::kAttribute});
            emit_at(out.data() + MadHeader::kBytes, held);
        },
        message);
    return out;
}

}  // namespace cairn::wire
