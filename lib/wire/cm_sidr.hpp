// SIDR: asks which queue pair and Q_Key serve a service by datagrams (IBTA vol. 1, 12.11).
#pragma once

#include "lib/wire/cm_types.hpp"

namespace cairn::wire {

using SidrRequestId = Number<struct SidrRequestIdTag, std::uint32_t>;

struct RawSidrReq {
    Be32 request_id;
    Be16 pkey;
    Be16 reserved6;
    Be64 service_id;
    PrivateData<216> private_data;
};
static_assert(sizeof(RawSidrReq) == kMessageBytes && alignof(RawSidrReq) == 1);

struct SidrReq {
    using Raw = RawSidrReq;
    static constexpr std::uint16_t kAttribute = 0x0017;

    SidrRequestId request_id{};
    Pkey pkey{0xffff};
    ServiceId service_id{};
    PrivateData<216> private_data{};

    [[nodiscard]] static ParsedMad<SidrReq> parse(const Raw& raw) noexcept {
        return SidrReq{SidrRequestId{raw.request_id.get()}, Pkey{raw.pkey.get()}, ServiceId{raw.service_id.get()},
                       raw.private_data};
    }
    void emit(Raw& raw) const noexcept {
        raw = {Be32{request_id.value}, Be16{pkey.value}, Be16{}, Be64{service_id.value}, private_data};
    }

    friend bool operator==(const SidrReq&, const SidrReq&) noexcept = default;
};

// Other values are reserved and may come.
enum class SidrStatus : std::uint8_t {
    Valid = 0,
    UnsupportedService = 1,
    Rejected = 2,
    NoQueuePair = 3,
    Redirected = 4,
    UnsupportedVersion = 5,
};

struct RawSidrRep {
    Be32 request_id;
    std::uint8_t status;
    std::uint8_t info_length;
    Be16 reserved6;
    Be24 qpn;
    std::uint8_t reserved11;
    Be64 service_id;
    Be32 qkey;
    AdditionalInfo info;
    PrivateData<136> private_data;
};
static_assert(sizeof(RawSidrRep) == kMessageBytes && alignof(RawSidrRep) == 1);

struct SidrRep {
    using Raw = RawSidrRep;
    static constexpr std::uint16_t kAttribute = 0x0018;

    SidrRequestId request_id{};
    SidrStatus status = SidrStatus::Valid;
    std::uint8_t info_bytes = 0;  // <= kInfoBytes
    Qpn qpn{};                    // valid, with the Q_Key, if the status is Valid
    ServiceId service_id{};
    Qkey qkey{};
    AdditionalInfo info{};
    PrivateData<136> private_data{};

    [[nodiscard]] static ParsedMad<SidrRep> parse(const Raw& raw) noexcept {
        if (raw.info_length > kInfoBytes) {
            return MadDrop::BadInfoLength;
        }
        return SidrRep{SidrRequestId{raw.request_id.get()},
                       static_cast<SidrStatus>(raw.status),
                       raw.info_length,
                       Qpn{raw.qpn.get()},
                       ServiceId{raw.service_id.get()},
                       Qkey{raw.qkey.get()},
                       raw.info,
                       raw.private_data};
    }
    void emit(Raw& raw) const noexcept {
        raw = {Be32{request_id.value},
               static_cast<std::uint8_t>(status),
               info_bytes,
               Be16{},
               Be24{qpn.value},
               0,
               Be64{service_id.value},
               Be32{qkey.value},
               info,
               private_data};
    }

    friend bool operator==(const SidrRep&, const SidrRep&) noexcept = default;
};

}  // namespace cairn::wire
