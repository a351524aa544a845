#include "rpc/copyrpc/loans.hpp"

#include <utility>

#include "lib/base/copy.hpp"
#include "rpc/copyrpc/transfers.hpp"

namespace cairn::copyrpc {

bool Lender::give(verbs::Pd& pd, std::uint32_t bytes, verbs::Rights rights, rpc::MsgBuffer& memory,
                  std::unique_ptr<verbs::Mr>& key) {
    memory = pool_.allocate(bytes);
    if (!memory.valid()) {
        return false;
    }
    lent_bytes_ += bytes;
    auto made = device_.register_memory(pd, memory.span(), rights, 0);  // its peer does not learn our addresses
    key = made.ok() ? std::move(made).value() : nullptr;
    return key != nullptr;
}

std::unique_ptr<Loan> Lender::lend(verbs::Pd& pd, std::uint64_t lent_by_session, std::span<const std::uint8_t> request,
                                   std::uint32_t answer_bytes) {
    const auto request_bytes = static_cast<std::uint32_t>(request.size());
    if (!has_share(pool_, lent_bytes_, lent_by_session, std::uint64_t{request_bytes} + answer_bytes)) {
        return nullptr;
    }
    auto loan = std::make_unique<Loan>();
    const bool lent =
        (request.empty() || give(pd, request_bytes, verbs::Right::RemoteRead, loan->request, loan->request_key)) &&
        (answer_bytes == 0 ||
         give(pd, answer_bytes, verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::RemoteWrite, loan->answer,
              loan->answer_key));
    if (!lent) {
        end(std::move(loan));
        return nullptr;
    }
    copy_bytes(loan->request.data, request.data(), request_bytes);
    clear_bytes(loan->answer.data, answer_bytes);  // a server may say that it wrote more than it did
    return loan;
}

void Lender::end(std::unique_ptr<Loan> loan) noexcept {
    if (loan != nullptr) {
        loan->request_key.reset();
        loan->answer_key.reset();
        lent_bytes_ -= loan->bytes();
        pool_.release(loan->request);
        pool_.release(loan->answer);
    }
}

}  // namespace cairn::copyrpc
