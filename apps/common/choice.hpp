// Arguments whose value is one of a few words.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace cairn::app {

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
std::vector<std::string> words_of(const Choices<T>& choices) {
    std::vector<std::string> words;
    std::transform(choices.begin(), choices.end(), std::back_inserter(words),
                   [](const auto& each) { return each.first; });
    return words;
}

template <class T>
T choice_named(const Choices<T>& choices, const std::string& word) {
    return std::find_if(choices.begin(), choices.end(), [&word](const auto& each) { return each.first == word; })
        ->second;
}

// Adds the argument `names WORD`, which sets `value` to the meaning of the word. Help and error texts list the words.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& names, T& value, const Choices<T>& choices,
                        const std::string& what) {
    const auto now =
        std::find_if(choices.begin(), choices.end(), [&value](const auto& each) { return each.second == value; });
    return app
        .add_option_function<std::string>(
            names, [&value, choices](const std::string& word) { value = choice_named(choices, word); }, what)
        ->check(CLI::IsMember(words_of(choices)))
        ->default_str(now != choices.end() ? now->first : "");
}

}  // namespace cairn::app
