// A hostile peer of a fuzzer of copyrpc: its input decides when it keeps to the rules.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fuzz/copyrpc/hosts.hpp"
#include "tests/fuzz/copyrpc/spoil.hpp"
#include "tests/fuzz/stranger_host.hpp"

namespace cairn::copyrpc {

using test::StrangerHost;

constexpr std::uint32_t kMirrorAt = kRing;  // in a peer's memory, which begins with its ring
constexpr std::uint32_t kLentAt = 2 * kRing;
constexpr std::uint32_t kWordAt = kLentAt + kLongest;
constexpr std::uint32_t kPeerBytes = kWordAt + kBlockBytes;

// A peer's end of a connection. Its memory is at the place of its number in the host's memory.
class FuzzedPeer {
public:
    FuzzedPeer(StrangerHost& host, std::size_t number, Flow flow)
        : host_(host),
          contact_(host.contacts()[number]),
          offset_(number * kPeerBytes),
          word_(host.open(own().subspan(kWordAt))),
          flow_(flow) {}

    // Connects with a greeting; the input may change a byte of it.
    void connect(Input& input, bool is_sound, Instant now) {
        if (contact_.qp != nullptr && contact_.qp->state() == verbs::QpState::Err) {
            host_.end(contact_, false, now);
        }
        if (contact_.qp != nullptr) {
            return;
        }
        std::fill(own().begin(), own().end(), std::uint8_t{0});
        end_.emplace(own().first(kRing), own().subspan(kMirrorAt, kRing), StrangerHost::kReceives, kReceives, flow_);
        asked_.clear();
        owed_.clear();
        hears_ = true;
        RawHello raw;
        Hello{kRing, StrangerHost::kReceives, address(), host_.region().rkey(), kLongest, flow_, word_->rkey()}.emit(
            raw);
        const std::span<std::uint8_t> greeting{reinterpret_cast<std::uint8_t*>(&raw), sizeof(raw)};
        if (!is_sound) {
            greeting[input.byte() % greeting.size()] = input.byte();
        }
        host_.connect(contact_, kServerAddress, kService, greeting, now);
    }
    void end(bool in_order, Instant now) { host_.end(contact_, in_order, now); }
    // Puts requests that are alike into the next batch, as far as the rules allow it. They may lend memory anywhere.
    void ask(Input& input) {
        if (!is_up()) {
            return;
        }
        const std::uint8_t what = input.byte();
        const std::uint32_t answer_bytes = (what & 0x10U) != 0 ? 2 * 0xffU : input.byte() * 2U;
        Message request;
        request.type = what % 5U;
        if ((what & 0x20U) != 0) {
            request.extension = Extension{what, what % 3U == 0 ? 1U << (what % 16U) : 0};
        }
        request.elsewhere = (what & 0xc0U) == 0x40U ? std::optional(place(input)) : std::nullopt;
        request.room = (what & 0x80U) != 0 ? std::optional(place(input)) : std::nullopt;
        const std::vector<std::uint8_t> payload(request.elsewhere ? 0U : input.byte() * 2U, what);
        request.payload = payload;
        const std::uint32_t extras =
            (request.extension ? 1U : 0U) + (request.elsewhere ? 1U : 0U) + (request.room ? 1U : 0U);
        const auto bytes = static_cast<std::uint32_t>(payload.size());
        for (std::uint32_t left = 1U + what % 4U;
             left > 0 && end_->judge_request(bytes, extras, answer_bytes) == Room::Fits; --left) {
            request.call = ++calls_;
            end_->put_request(request, answer_bytes);
            asked_[request.call] = request.charge;
        }
    }
    // Puts an answer to a call of the server into the next batch.
    void answer(Input& input) {
        if (!is_up() || owed_.empty()) {
            return;
        }
        const std::uint8_t what = input.byte();
        const auto at = owed_.begin() + static_cast<std::ptrdiff_t>(what % owed_.size());
        const std::vector<std::uint8_t> payload(std::min<std::uint32_t>(input.byte(), Message::answer_max(at->charge)));
        Message answer;
        answer.answer = true;
        answer.call = at->call ^ ((what & 0x30U) == 0x30U ? 1U << (what % 31U) : 0);
        if ((what & 0xc0U) == 0x40U) {
            answer.outcome = static_cast<Outcome>(what % static_cast<unsigned>(Outcome::Count));
        }
        if ((what & 0xc0U) == 0x80U) {
            answer.written = 1U << (what % 16U);
        } else {
            answer.payload = payload;
        }
        if (end_->fits_answer(answer)) {
            end_->put_answer(answer, at->charge);
            end_->release(at->held);
            owed_.erase(at);
        }
    }
    // Reads the server's batches until they contradict what the peer has sent.
    void hear() {
        while (!contact_.came.empty()) {
            const std::uint32_t immediate = contact_.came.front();
            contact_.came.pop_front();
            std::optional<Breach> breach;
            if (hears_) {
                breach = end_->open(BatchImmediate::parse(immediate));
            }
            for (RingEnd::Taken taken; hears_ && !breach && end_->next(taken);) {
                take(taken);
            }
            hears_ = hears_ && !breach && !end_->breach();
        }
        if (hears_ && end_) {
            const RawConsumerWord word = end_->receive().word().raw();
            std::memcpy(own().subspan(kWordAt).data(), &word, sizeof(word));
        }
    }
    // Sends batches that follow the rules, except for one number of the first.
    void speak(Input& input, bool is_sound) {
        if (!is_up()) {
            return;
        }
        while (std::optional<RingWrite> write = end_->next_write()) {
            const std::uint32_t from = write->offset;
            const std::uint8_t what = std::exchange(is_sound, true) ? 0 : input.byte();
            if (what != 0) {
                spoil(input, what, own().subspan(kMirrorAt + from, write->bytes), *write);
            }
            for (std::uint32_t copies = what >= 0xf0U ? 2 : 1; copies > 0; --copies) {
                host_.write_own(contact_, offset_ + kMirrorAt + from, write->bytes, said_->address + write->offset,
                                said_->rkey, write->immediate);
            }
        }
    }
    // Writes bytes into the server's ring or next to it, with an immediate or without.
    void write_anything(Input& input) {
        if (!is_up()) {
            return;
        }
        const std::uint8_t what = input.byte();
        const std::vector<std::uint8_t> bytes(1U + what % 64U, input.byte());
        const std::uint64_t at = input.take<std::uint16_t>() % (kRing + 2 * kBlockBytes);
        const auto immediate = (what & 0xc0U) == 0x80U ? std::optional<std::uint32_t>(input.byte()) : std::nullopt;
        host_.write(contact_, bytes, said_->address + at - kBlockBytes, said_->rkey, immediate);
    }
    // Changes any byte of the memory that the server READs and WRITEs, or of batches that are about to leave.
    void change_own(Input& input) {
        const std::uint32_t at = input.take<std::uint16_t>() % kPeerBytes;
        own()[at] = input.byte();
    }

private:
    struct Owed {
        std::uint32_t call;
        std::uint16_t charge;
        Held held;
    };
    [[nodiscard]] std::span<std::uint8_t> own() const { return host_.memory().subspan(offset_, kPeerBytes); }
    [[nodiscard]] std::uint64_t address() const { return host_.region().address() + offset_; }
    [[nodiscard]] bool is_up() {
        said_ = contact_.up ? Hello::parse(std::span(contact_.said.octets).first(contact_.said.size)) : std::nullopt;
        return said_.has_value() && end_.has_value();
    }
    // Returns memory that the peer lends, or memory that it does not have.
    Place place(Input& input) const {
        return spoil_place(input, {address() + kLentAt, host_.region().rkey(), kLongest});
    }
    void take(const RingEnd::Taken& taken) {
        const Message& message = taken.message;
        if (!message.answer) {
            owed_.push_back({message.call, message.charge, taken.held});
        } else if (const auto found = asked_.find(message.call); found != asked_.end()) {
            end_->on_answered(found->second);
            asked_.erase(found);
        }
    }

    StrangerHost& host_;
    StrangerHost::Contact& contact_;
    const std::size_t offset_;
    std::unique_ptr<verbs::Mr> word_;
    const Flow flow_;
    std::optional<Hello> said_;  // the server's greeting
    std::optional<RingEnd> end_;
    std::map<std::uint32_t, std::uint16_t> asked_;  // the charge of each call
    std::vector<Owed> owed_;                        // calls of the server that wait for answers
    std::uint32_t calls_ = 0;
    bool hears_ = true;
};

}  // namespace cairn::copyrpc
