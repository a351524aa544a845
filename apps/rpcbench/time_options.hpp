// The arguments of cairn-rpcbench for ScaleRPC servers with slices in step.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/common/command_line.hpp"
#include "apps/rpcbench/options.hpp"
#include "lib/net/address.hpp"

namespace cairn::rpcbench {

inline void declare_time(CLI::App& app, Options& options) {
    ScalerpcOptions& own = options.scalerpc;
    auto* const serves = app.add_flag("--serve-time", own.serves_time,
                                      "scalerpc: be the time server: slices of servers that follow are in step with "
                                      "this one's");
    app.add_option("--follow-time", own.time_server, "scalerpc: IP address of the time server that this server follows")
        ->excludes(serves);
    app.add_option("--time-service", own.time_service, "scalerpc: name of the time server's own service, a port number")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    app.add_option("--cohorts", own.cohorts,
                   "scalerpc: with --serve-time and --follow-time: groups of clients that take turns; all servers have "
                   "as many, and the same --slice")
        ->check(CLI::Range(1U, 256U))
        ->capture_default_str();
    app.add_option("--cohort", own.cohort, "scalerpc: group of a client at servers in step")
        ->check(CLI::Range(0U, 255U))
        ->capture_default_str();
}

// Judges the arguments. Errors: the address is none; arguments that do not go together.
inline Status judge_time(const CLI::App& app, const Options& options) {
    const ScalerpcOptions& own = options.scalerpc;
    if (!own.time_server.empty() && !net::IpAddress::parse(own.time_server).ok()) {
        return Error{fmt::format("--follow-time {} is no IP address", own.time_server),
                     "give the address of the server that has --serve-time"};
    }
    if (!own.keeps_time()) {
        for (const char* argument : {"--time-service", "--cohorts"}) {
            if (app.count(argument) != 0) {
                return Error{fmt::format("{} is for servers in step", argument),
                             "add --serve-time or --follow-time ADDRESS, or leave it out"};
            }
        }
        return Nothing{};
    }
    const char* const given = own.serves_time ? "--serve-time" : "--follow-time";
    if (!options.server) {
        return Error{fmt::format("{} is for a server", given), "add --server, or leave it out"};
    }
    if (!own.features.grouping) {
        return Error{fmt::format("{} needs groups, and --without grouping has none", given), "leave one of them out"};
    }
    if (own.serves_time && own.time_service == options.service) {
        return Error{fmt::format("--time-service {} is the --service, too", own.time_service),
                     "give another --time-service"};
    }
    return Nothing{};
}

}  // namespace cairn::rpcbench
