#include "apps/fsd/config_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace cairn::fsd {

namespace {

// Arguments that are for one start of the program, and not for all.
constexpr std::array<std::string_view, 4> kNotInFiles{"config", "format", "help", "version"};

std::optional<std::string> text_of(const toml::node& value) {
    if (const auto text = value.value_exact<std::string>()) {
        return text;
    }
    if (const auto number = value.value_exact<std::int64_t>()) {
        return std::to_string(*number);
    }
    if (const auto truth = value.value_exact<bool>()) {
        return *truth ? "true" : "false";
    }
    return std::nullopt;
}

// Returns the texts of a value. A list is several values of one argument.
std::optional<std::vector<std::string>> texts_of(const toml::node& value) {
    const toml::array* const list = value.as_array();
    if (list == nullptr) {
        const std::optional<std::string> text = text_of(value);
        return text ? std::optional(std::vector{*text}) : std::nullopt;
    }
    std::vector<std::string> texts;
    for (const toml::node& each : *list) {
        const std::optional<std::string> text = text_of(each);
        if (!text) {
            return std::nullopt;
        }
        texts.push_back(*text);
    }
    return texts;
}

Status give(CLI::Option& option, const std::vector<std::string>& texts, const std::string& where) {
    try {
        for (const std::string& text : texts) {
            option.add_result(text);
        }
        option.run_callback();
    } catch (const CLI::Error& error) {  // the library refuses by this exception, which ends here
        return Error{fmt::format("{}: {}", where, error.what()), "--help says what it takes"};
    }
    return Nothing{};
}

}  // namespace

Status read_config(const std::string& file_name, CLI::App& app) {
    toml::table root;
    try {
        root = toml::parse_file(file_name);
    } catch (const toml::parse_error& error) {  // the library refuses by this exception, which ends here
        return Error{fmt::format("{}:{}: {}", file_name, error.source().begin.line, error.description()),
                     "name a file of TOML: a table [fs], and key = value lines; see config/fs.toml"};
    }
    const toml::table* const table = root["fs"].as_table();
    if (table == nullptr || root.size() != 1) {
        return Error{fmt::format("{}: there is not exactly one table [fs]", file_name), "see config/fs.toml"};
    }
    for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        const std::string where = fmt::format("{}:{}: {}", file_name, value.source().begin.line, name);
        CLI::Option* const option = app.get_option_no_throw("--" + name);
        if (option == nullptr || std::ranges::find(kNotInFiles, name) != kNotInFiles.end()) {
            return Error{where + " is no key of a file", "--help lists the arguments: their names are the keys"};
        }
        const std::optional<std::vector<std::string>> texts = texts_of(value);
        if (!texts || texts->empty() || (value.is_array() && option->get_expected_max() == 1)) {
            return Error{where + " is no text, number or truth value", "see config/fs.toml"};
        }
        if (option->count() == 0) {
            if (const Status given = give(*option, *texts, where); !given.ok()) {
                return given;
            }
        }
    }
    return Nothing{};
}

}  // namespace cairn::fsd
