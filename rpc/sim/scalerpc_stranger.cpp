#include "rpc/sim/scalerpc_stranger.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cairn::sim {

using scalerpc::News;

std::span<const std::uint8_t> ScalerpcStranger::greeting(Contact& contact) {
    parts_[contact.number] = {};
    parts_[contact.number].overstays = random().chance(kMillion / 3);
    std::memset(memory_of(contact).data(), 0, memory_of(contact).size());
    scalerpc::Hello hello;
    hello.shape = shape_;
    hello.staged = grant_of(memory_of(contact));
    hello.answers = grant_of(answers_of(contact));
    hello_ = hello.raw();
    return {reinterpret_cast<const std::uint8_t*>(&hello_), sizeof(hello_)};
}

void ScalerpcStranger::speak(Contact& contact) {
    if (contact.asked) {
        speak_as_client(contact);
    } else {
        speak_as_server(contact);
    }
}

void ScalerpcStranger::on_news(Part& part, const News& news) const {
    const bool is_new = static_cast<std::int32_t>(news.epoch - part.grant.epoch) > 0;
    if (news.kind == News::Kind::Grant && is_new) {
        part.grant = news;
        part.next = news.accepted;
    } else if (news.kind == News::Kind::Notice && news.epoch == part.grant.epoch && !part.overstays) {
        part.grant.kind = News::Kind::None;
        part.next = news.accepted;
        part.acknowledged = news.epoch;
    }
}

void ScalerpcStranger::look_at_news(const Contact& contact) {
    Part& part = parts_[contact.number];
    const std::span<const std::uint8_t> answers = answers_of(contact);
    for (std::uint32_t back = 2 * shape_.blocks; back > 0; --back) {
        const std::uint32_t sequence = part.next + shape_.blocks - back;
        scalerpc::Answer answer;
        const auto block =
            answers.subspan(scalerpc::kControlBytes + shape_.end_of(sequence) - shape_.bytes, shape_.bytes);
        if (scalerpc::read_answer(block, sequence, answer) == scalerpc::Look::There) {
            on_news(part, answer.news);
        }
    }
    if (const auto control = scalerpc::Control::parse(answers.data())) {
        on_news(part, control->news);
    }
}

void ScalerpcStranger::speak_as_client(Contact& contact) {
    look_at_news(contact);
    if (parts_[contact.number].grant.kind == News::Kind::Grant && random().chance(kMillion * 3 / 4)) {
        write_request(contact);
    } else {
        write_entry(contact);
    }
}

scalerpc::Request ScalerpcStranger::any_request(std::uint32_t sequence) {
    scramble(payload_);
    const std::size_t most = std::min<std::size_t>(payload_.size(), shape_.message_max());
    return {sequence, static_cast<std::uint8_t>(random().between(1, 9)), static_cast<std::uint32_t>(random().below(2)),
            std::span(payload_).first(random().below(most + 1))};
}

// Makes the request in the block longer than it is, so that bytes before it would be a part of it.
void ScalerpcStranger::name_more(std::span<std::uint8_t> block) {
    scalerpc::RawTrailer raw;
    std::uint8_t* const at = block.data() + block.size() - sizeof(raw);
    std::memcpy(&raw, at, sizeof(raw));
    raw.bytes.set(static_cast<std::uint32_t>(random().between(raw.bytes.get(), shape_.message_max())));
    std::memcpy(at, &raw, sizeof(raw));
}

// Writes the next request of the slice. Sometimes writes it to another place, or only its end.
void ScalerpcStranger::write_request(Contact& contact) {
    Part& part = parts_[contact.number];
    std::vector<std::uint8_t> block(shape_.bytes);
    std::uint32_t written = scalerpc::put_request(any_request(part.next), part.grant.epoch, block);
    if (part.next % 3 == 0) {
        name_more(block);
    } else {
        written = shape_.bytes;
        spoil(contact, block);
    }
    std::uint64_t address = part.grant.grant.address + shape_.end_of(part.next) - written;
    if (contact.manner == Manner::Babbles && random().chance(kMillion / 8)) {
        address += (random().between(1, 40) - 20) * 64;
    }
    write(contact, std::span(block).last(written), address, part.grant.grant.rkey);
    ++part.next;
}

// Writes an entry that names staged requests.
void ScalerpcStranger::write_entry(Contact& contact) {
    const auto welcome = scalerpc::Control::parse(answers_of(contact).data() + scalerpc::kWelcomeOffset);
    if (!welcome || welcome->news.kind != News::Kind::Welcome) {
        return;
    }
    const Part& part = parts_[contact.number];
    const std::span<std::uint8_t> staged = memory_of(contact).first(shape_.session_bytes());
    scalerpc::Entry entry;
    entry.first = part.next;
    entry.count = static_cast<std::uint32_t>(random().between(1, shape_.blocks));
    entry.acknowledged = part.acknowledged;
    entry.address = grant_of(staged).address + std::uint64_t{shape_.index_of(part.next)} * shape_.bytes;
    entry.longest =
        static_cast<std::uint32_t>(std::min<std::size_t>(shape_.bytes, payload_.size() + sizeof(scalerpc::RawTrailer)));
    for (std::uint32_t i = 0; i < entry.count; ++i) {
        const auto block = staged.subspan(shape_.end_of(part.next + i) - shape_.bytes, shape_.bytes);
        (void)scalerpc::put_request(any_request(part.next + i), scalerpc::kStaged, block);
        if ((part.next + i) % 8 == 5) {
            name_more(block);
        } else if (random().chance(kMillion / 8)) {
            spoil(contact, block);
        }
    }
    scalerpc::RawEntry raw = entry.raw();
    const std::span<std::uint8_t> bytes{reinterpret_cast<std::uint8_t*>(&raw), sizeof(raw)};
    spoil(contact, bytes);
    write(contact, bytes, welcome->news.grant.address, welcome->news.grant.rkey);
}

News ScalerpcStranger::any_news() {
    News news;
    news.kind = static_cast<News::Kind>(random().below(4));
    news.epoch = static_cast<std::uint32_t>(random().between(1, 4));
    news.accepted = static_cast<std::uint32_t>(random().below(4));
    news.grant = grant_of(memory());
    return news;
}

// Writes an answer or a control word of any kind.
void ScalerpcStranger::speak_as_server(Contact& contact) {
    const auto peer = scalerpc::Hello::parse(std::span(contact.said.octets).first(contact.said.size));
    if (!peer || peer->shape != shape_) {
        return;
    }
    if (random().chance(kMillion / 2)) {
        scalerpc::RawControl raw = scalerpc::Control{++contact.place, any_news()}.raw();
        const std::span<std::uint8_t> bytes{reinterpret_cast<std::uint8_t*>(&raw), sizeof(raw)};
        spoil(contact, bytes);
        const std::uint32_t offset = random().chance(kMillion / 3) ? scalerpc::kWelcomeOffset : 0;
        write(contact, bytes, peer->answers.address + offset, peer->answers.rkey);
        return;
    }
    std::vector<std::uint8_t> block(shape_.bytes);
    scalerpc::Answer answer;
    answer.sequence = contact.sequence;
    contact.sequence += random().chance(kMillion * 3 / 4) ? 1U : 0U;
    answer.outcome = static_cast<scalerpc::Outcome>(random().below(5));
    answer.news = any_news();
    answer.payload = std::span(payload_).first(random().below(8));
    (void)scalerpc::put_answer(answer, block);
    spoil(contact, block);
    write(contact, block,
          peer->answers.address + scalerpc::kControlBytes + shape_.end_of(answer.sequence) - shape_.bytes,
          peer->answers.rkey);
}

// Writes bytes. They lie in the contact's memory until they have left; later bytes may overwrite them.
void ScalerpcStranger::write(Contact& contact, std::span<const std::uint8_t> bytes, std::uint64_t address, Rkey rkey) {
    const std::span<std::uint8_t> room = memory_of(contact).last(shape_.bytes);
    std::copy(bytes.begin(), bytes.end(), room.begin());
    const std::array<verbs::Sge, 1> pieces{region().sge(static_cast<std::uint64_t>(room.data() - memory().data()),
                                                        static_cast<std::uint32_t>(bytes.size()))};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.sges = pieces;
    request.remote_address = address;
    request.rkey = rkey;
    post(contact, request);
}

}  // namespace cairn::sim
