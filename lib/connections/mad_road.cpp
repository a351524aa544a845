#include "lib/connections/mad_road.hpp"

#include <cstring>

#include "lib/wire/mad.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::connections {

void WorkerRoad::send(const cm::OutMad& mad, port::Path& path, Instant now) {
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        return;
    }
    wire::UdHeader said;
    said.to = said.from = wire::kGeneralServicesQpn;
    said.qkey = wire::kGeneralServicesQkey;
    said.psn = psn_;
    psn_ = psn_.next();
    const wire::RawUd header = said.raw(mad.bytes.size());
    std::memcpy(buffer.data, &header, sizeof(header));
    std::memcpy(buffer.data + sizeof(header), mad.bytes.data(), mad.bytes.size());
    sender_.send(buffer, &path, sizeof(header) + mad.bytes.size() + port::kIcrcBytes, {}, now);
}

}  // namespace cairn::connections
