#include "apps/perf/rping.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::perf {

namespace {

constexpr unsigned kOfOurs = 0;    // the offer that this end sends
constexpr unsigned kOfTheirs = 1;  // the offer that it received

}  // namespace

Result<std::unique_ptr<PingEnd>> PingEnd::create(verbs::Device& device, verbs::Pd& pd, verbs::Cq& completions,
                                                 std::uint32_t text_bytes) {
    std::unique_ptr<PingEnd> made(new PingEnd);
    made->text_bytes_ = text_bytes;
    auto memory = pmd::HeapBlock::allocate(made->offer_place(2), "texts");
    if (!memory.ok()) {
        return memory.error();
    }
    made->memory_ = std::make_unique<pmd::HeapBlock>(std::move(memory).value());
    auto mr = device.register_memory(pd, made->memory_->bytes(), kRemoteRights | verbs::Right::LocalWrite);
    if (!mr.ok()) {
        return mr.error();
    }
    made->mr_ = std::move(mr).value();
    verbs::QpCapacity capacity;
    capacity.send_slots = 8;
    capacity.receive_slots = 2;
    capacity.max_sges = 1;
    capacity.inline_bytes = 0;
    auto qp = device.create_qp(pd, capacity, {completions, completions});
    if (!qp.ok()) {
        return qp.error();
    }
    made->qp_ = std::move(qp).value();
    return made;
}

RawOffer PingEnd::offer_of(unsigned which) const noexcept {
    return {Be64{mr_->address() + std::uint64_t{which} * text_bytes_}, Be32{mr_->rkey().value}, Be32{text_bytes_}};
}

RawOffer PingEnd::received() const noexcept {
    return read_raw<RawOffer>(place_of(offer_place(kOfTheirs)));
}

bool PingEnd::post_receive(std::uint64_t tag) {
    const verbs::Sge place = mr_->sge(offer_place(kOfTheirs), sizeof(RawOffer));
    return qp_->post_receive(verbs::ReceiveRequest{tag, {&place, 1}}) == verbs::PostVerdict::Posted;
}

bool PingEnd::tell(const RawOffer& offer, std::uint64_t tag) {
    std::memcpy(place_of(offer_place(kOfOurs)), &offer, sizeof(offer));
    const verbs::Sge place = mr_->sge(offer_place(kOfOurs), sizeof(RawOffer));
    verbs::SendRequest request;
    request.wr_id = tag;
    request.sges = {&place, 1};
    return qp_->post_send(request) == verbs::PostVerdict::Posted;
}

bool PingEnd::move(verbs::WorkOpcode opcode, const RawOffer& remote, std::uint32_t bytes, std::uint64_t tag) {
    const verbs::Sge place = mr_->sge(0, bytes);
    verbs::SendRequest request;
    request.wr_id = tag;
    request.opcode = opcode;
    request.sges = {&place, 1};
    request.remote_address = remote.address.get();
    request.rkey = Rkey{remote.rkey.get()};
    return qp_->post_send(request) == verbs::PostVerdict::Posted;
}

}  // namespace cairn::perf
