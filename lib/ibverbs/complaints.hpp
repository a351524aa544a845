// What the drop-in libraries say on stderr, a line for each reason: programs say errno only, if anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/result.hpp"

namespace cairn::ibverbs {

// The library that speaks.
enum class Speaker : std::uint8_t { Verbs, Cm };

// Prints the line, unless this process, or one that it was forked from, has printed it before: programs try again.
// Beyond so many different lines none is printed, nor while nobody reads what is on stderr: it never waits. Needs no
// memory, no lock and no descriptor; errno stays.
constexpr std::size_t kMostLines = 64;
void complain(Speaker speaker, std::string_view line) noexcept;
// The same; the line is dropped if there is no memory to make it.
void complain(Speaker speaker, const Error& refused) noexcept;

// No descriptor could be made, for which errno has the reason.
void complain_of_descriptors() noexcept;
// There is no memory for an object.
void complain_of_memory() noexcept;

// Limits that programs may go beyond. Inline data has none here: libraries find that limit by trying.
enum class Limit : std::uint8_t {
    SendRequests,
    ReceiveRequests,
    SendPieces,
    ReceivePieces,
    SharedRequests,
    SharedPieces,
    Completions,
    Reads,
    AnsweredReads,
    Regions,
    MessageBytes,
    ReadBytes,
    Count,
};

// A program asked for more than the limit. That is told once for each limit, whatever else was asked for.
void complain_of(Limit limit, std::uint64_t wanted) noexcept;
// Returns whether it is within the limit. What is not is told.
[[nodiscard]] bool is_within(Limit limit, std::uint64_t wanted) noexcept;

}  // namespace cairn::ibverbs
