#include "lib/port/faults.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace cairn::port {

namespace {

constexpr const char* kForm =
    "faults are a list as in loss=1%,duplicates=1%,reorder=1%,damage=0.1%,delay=1ms,seed=7,qp=2s,port=2s+500ms,"
    "peer=10.0.0.2@2s";
constexpr Duration kLongest = seconds(86'400);

// Reads all of the text as a number that is not negative.
template <class Number>
bool read_number(std::string_view text, Number& out) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && out >= 0;
}

bool read_share(std::string_view text, std::uint32_t& per_million) noexcept {
    double percent = 0;
    if (!text.ends_with('%') || !read_number(text.substr(0, text.size() - 1), percent) || !(percent <= 100)) {
        return false;
    }
    per_million = static_cast<std::uint32_t>(percent * 10'000 + 0.5);
    return true;
}

bool read_duration(std::string_view text, Duration& out) noexcept {
    struct Unit {
        std::string_view name;
        double ns;
    };
    // The last unit is a suffix of all others.
    for (const Unit& unit : {Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}}) {
        if (text.ends_with(unit.name)) {
            double count = 0;
            if (!read_number(text.substr(0, text.size() - unit.name.size()), count) ||
                !(count * unit.ns <= static_cast<double>(kLongest.ns))) {
                return false;
            }
            out = Duration{static_cast<std::int64_t>(count * unit.ns + 0.5)};
            return true;
        }
    }
    return false;
}

bool read_outage(std::string_view text, Outage& out) noexcept {
    const std::size_t plus = text.find('+');
    if (plus != std::string_view::npos && !read_duration(text.substr(plus + 1), out.length)) {
        return false;
    }
    return read_duration(text.substr(0, plus), out.begin);
}

bool read_peer(std::string_view text, Faults& out) {
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) {
        return false;
    }
    const Result<net::IpAddress> address = net::IpAddress::parse(text.substr(0, at));
    if (!address.ok() || !read_outage(text.substr(at + 1), out.peer_outage)) {
        return false;
    }
    out.peer = address.value();
    return true;
}

struct Fault {
    std::string_view name;
    bool (*read)(std::string_view value, Faults& out);
};
constexpr std::array<Fault, 9> kFaults{{
    {"seed", [](std::string_view value, Faults& out) { return read_number(value, out.seed); }},
    {"loss", [](std::string_view value, Faults& out) { return read_share(value, out.loss_per_million); }},
    {"duplicates", [](std::string_view value, Faults& out) { return read_share(value, out.duplicates_per_million); }},
    {"reorder", [](std::string_view value, Faults& out) { return read_share(value, out.reorder_per_million); }},
    {"damage", [](std::string_view value, Faults& out) { return read_share(value, out.damage_per_million); }},
    {"delay", [](std::string_view value, Faults& out) { return read_duration(value, out.delay); }},
    {"port", [](std::string_view value, Faults& out) { return read_outage(value, out.port); }},
    {"peer", read_peer},
    {"qp", [](std::string_view value, Faults& out) { return read_duration(value, out.queue_pair); }},
}};

std::string text_of(Duration duration) {
    return fmt::format("{}ns", duration.ns);
}

std::string text_of(const Outage& outage) {
    return outage.length < Outage::kNever ? fmt::format("{}ns+{}ns", outage.begin.ns, outage.length.ns)
                                          : text_of(outage.begin);
}

}  // namespace

bool Faults::any_of_port() const noexcept {
    return loss_per_million != 0 || duplicates_per_million != 0 || reorder_per_million != 0 ||
           damage_per_million != 0 || delay != Duration{} || port.happens() || peer.has_value();
}

std::string Faults::text() const {
    std::string list;
    const auto add_share = [&list](const char* name, std::uint32_t per_million) {
        if (per_million != 0) {
            list += fmt::format("{}={}%,", name, per_million / 1e4);
        }
    };
    add_share("loss", loss_per_million);
    add_share("duplicates", duplicates_per_million);
    add_share("reorder", reorder_per_million);
    add_share("damage", damage_per_million);
    if (delay != Duration{}) {
        list += fmt::format("delay={},", text_of(delay));
    }
    if (port.happens()) {
        list += fmt::format("port={},", text_of(port));
    }
    if (peer) {
        list += fmt::format("peer={}@{},", peer->text(), text_of(peer_outage));
    }
    if (queue_pair < Outage::kNever) {
        list += fmt::format("qp={},", text_of(queue_pair));
    }
    return list.empty() ? list : fmt::format("{}seed={}", list, seed);
}

Result<Faults> parse_faults(std::string_view text) {
    Faults faults;
    std::array<bool, kFaults.size()> given{};
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view entry = text.substr(0, comma);
        text.remove_prefix(std::min(comma + 1, text.size()));
        const std::size_t equals = std::min(entry.find('='), entry.size());
        std::size_t which = 0;
        while (which < kFaults.size() && kFaults[which].name != entry.substr(0, equals)) {
            ++which;
        }
        if (which == kFaults.size()) {
            return Error{fmt::format("there is no fault '{}'", entry), kForm};
        }
        if (given[which]) {
            return Error{fmt::format("the fault '{}' comes twice", entry), kForm};
        }
        given[which] = true;
        if (!kFaults[which].read(entry.substr(std::min(equals + 1, entry.size())), faults)) {
            return Error{fmt::format("the fault '{}' has another form", entry), kForm};
        }
    }
    return faults;
}

}  // namespace cairn::port
