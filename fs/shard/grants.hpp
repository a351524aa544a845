// Proofs of a client's rights to a file that it has opened.
#pragma once

#include "fs/message/requests.hpp"
#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

class Grants {
public:
    explicit Grants(const SipKey& cluster_key) noexcept : key_(cluster_key) {}

    [[nodiscard]] Grant give(const FileId& file, std::uint64_t client, std::uint32_t rights) const noexcept {
        return {rights, sip_hash(key_, file.place, file.random, client, std::uint64_t{rights})};
    }
    // True if the grant's proof is right and the grant has the wanted rights.
    [[nodiscard]] bool allows(const FileId& file, std::uint64_t client, const Grant& grant,
                              std::uint32_t rights) const noexcept {
        return (grant.rights & rights) == rights && give(file, client, grant.rights) == grant;
    }

private:
    SipKey key_;
};

}  // namespace cairn::fs
