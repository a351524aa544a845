// Messages of the drop-in libraries on stderr, one line for each reason: programs report errno only, if anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/result.hpp"

namespace cairn::ibverbs {

// The library that prints the line.
enum class Speaker : std::uint8_t { Verbs, Cm };

// Prints the line, unless this process, or one that it was forked from, has printed it before: programs try again.
// After kMostLines different lines no more are printed. A line is dropped if stderr would block: complain() never
// waits. Needs no memory, no lock and no descriptor; errno stays.
constexpr std::size_t kMostLines = 64;
void complain(Speaker speaker, std::string_view line) noexcept;
// As complain(line). The line is dropped if there is no memory to make it.
void complain(Speaker speaker, const Error& refused) noexcept;

// Reports that no descriptor could be made; errno has the reason.
void complain_of_descriptors() noexcept;
// Reports that there is no memory for an object.
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

// Reports that a program asked for more than the limit. It is reported once for each limit, whatever values were asked
// for.
void complain_of(Limit limit, std::uint64_t wanted) noexcept;
// Returns whether the value is within the limit. Reports one that is not.
[[nodiscard]] bool is_within(Limit limit, std::uint64_t wanted) noexcept;

}  // namespace cairn::ibverbs
