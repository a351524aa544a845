#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "apps/pktgen/stream.hpp"

namespace cairn::pktgen {

namespace {

std::vector<std::string_view> fault_names() {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < static_cast<std::size_t>(Fault::Count); ++i) {
        names.push_back(name_of(static_cast<Fault>(i)));
    }
    return names;
}

template <class Names>
std::string listed(const Names& names) {
    std::string text;
    for (const auto& name : names) {
        text += text.empty() ? "" : ", ";
        text += name;
    }
    return text;
}

// Reads a table key by key. Remembers the first fault and the known keys.
class Reader {
public:
    Reader(const toml::table& table, const std::string& file_name) : table_(table), file_name_(file_name) {}

    template <class T>
    void number(std::string_view key, T& into, std::int64_t least, std::int64_t most) {
        known_.emplace(key);
        const auto node = table_[key];
        if (!node) {
            return;
        }
        const std::optional<std::int64_t> value = node.template value_exact<std::int64_t>();
        if (!value || *value < least || *value > most) {
            fail(key, fmt::format("give a whole number from {} to {}", least, most));
            return;
        }
        into = static_cast<T>(*value);
    }
    void rate(std::string_view key, double& into) {
        known_.emplace(key);
        if (const auto node = table_[key]) {
            const std::optional<double> value = node.value<double>();
            if (!value || *value <= 0) {
                fail(key, "give a positive number");
                return;
            }
            into = *value;
        }
    }
    void address(std::string_view key, net::IpAddress& into, bool required = true) {
        known_.emplace(key);
        if (!required && !table_.contains(key)) {
            return;
        }
        const std::optional<std::string> text = table_[key].value_exact<std::string>();
        const Result<net::IpAddress> parsed = net::IpAddress::parse(text.value_or(""));
        if (!parsed.ok()) {
            fail(key, "give an IP address in quotes");
            return;
        }
        into = parsed.value();
    }
    void fault(std::string_view key, Fault& into) {
        known_.emplace(key);
        if (const auto node = table_[key]) {
            const std::string name = node.value<std::string>().value_or("");
            const std::vector<std::string_view> names = fault_names();
            const auto found = std::find(names.begin(), names.end(), name);
            if (found == names.end()) {
                fail(key, "give one of " + listed(names));
                return;
            }
            into = static_cast<Fault>(found - names.begin());
        }
    }
    // Called after the last key: an unknown key is an error, too.
    [[nodiscard]] std::optional<Error> finish() {
        for (const auto& [key, value] : table_) {
            if (!known_.contains(std::string_view(key.str()))) {
                fail(key.str(), "known keys are " + listed(known_));
            }
        }
        return error_;
    }

private:
    void fail(std::string_view key, std::string remedy) {
        if (!error_) {
            const auto* node = table_.get(key);
            const std::string where = node != nullptr ? fmt::format(":{}", node->source().begin.line) : "";
            error_ = Error{fmt::format("{}{}: [stream] {} is missing or not allowed", file_name_, where, key),
                           std::move(remedy)};
        }
    }

    const toml::table& table_;
    const std::string& file_name_;
    std::set<std::string, std::less<>> known_;
    std::optional<Error> error_;
};

}  // namespace

Result<Stream> parse_stream(const std::string& text, const std::string& file_name) {
    toml::table root;
    try {
        root = toml::parse(text, file_name);
    } catch (const toml::parse_error& error) {  // the library refuses by this exception, which ends here
        return Error{fmt::format("{}:{}: {}", file_name, error.source().begin.line, error.description()),
                     "write TOML: [stream] and key = value lines"};
    }
    const toml::table* table = root["stream"].as_table();
    if (table == nullptr || root.size() != 1) {
        return Error{fmt::format("{}: there is not exactly one table [stream]", file_name),
                     "see config/pktgen-ud.toml"};
    }
    Stream stream;
    net::IpAddress source{};
    std::uint32_t qpn = 0;
    std::uint32_t source_qpn = stream.source_qpn.value;
    std::uint32_t qkey = 0;
    std::uint16_t pkey = stream.pkey.value;
    Reader reader(*table, file_name);
    reader.address("source", source, false);
    reader.address("destination", stream.destination);
    reader.number("udp_source_port", stream.udp_source_port, 1, 65535);
    reader.number("traffic_class", stream.traffic_class, 0, 255);
    reader.number("qpn", qpn, 0, 0xffffff);
    reader.number("source_qpn", source_qpn, 0, 0xffffff);
    reader.number("qkey", qkey, 0, 0xffffffff);
    reader.number("pkey", pkey, 0, 0xffff);
    reader.number("payload_bytes", stream.payload_bytes, 0, 4096);
    reader.fault("fault", stream.fault);
    reader.rate("rate_pps", stream.rate_pps);
    reader.number("count", stream.count, 0, INT64_MAX);
    reader.number("seed", stream.seed, 0, INT64_MAX);
    if (std::optional<Error> error = reader.finish()) {
        return *error;
    }
    if (table->contains("source")) {
        stream.source = source;
    }
    if (stream.source && stream.source->is_v4() != stream.destination.is_v4()) {
        return Error{fmt::format("{}: source and destination are of two families", file_name),
                     "give both as IPv4 or both as IPv6"};
    }
    stream.qpn = Qpn{qpn};
    stream.source_qpn = Qpn{source_qpn};
    stream.qkey = Qkey{qkey};
    stream.pkey = Pkey{pkey};
    return stream;
}

Result<Stream> read_stream(const std::string& file_name) {
    std::ifstream file(file_name);
    std::stringstream text;
    if (!file || !(text << file.rdbuf())) {
        return Error{fmt::format("cannot read the script {}", file_name), "give --script FILE; see config/"};
    }
    return parse_stream(text.str(), file_name);
}

}  // namespace cairn::pktgen
