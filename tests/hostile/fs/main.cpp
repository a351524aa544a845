// fs_hostile: one attack on a daemon of the file system, by a process of its machine.
//
//   fs_hostile --socket PATH --attack NAME [--seconds S] [--seed N] [--victim PLACE-RANDOM]
//
// Ends with one JSON object: counts of what was sent, and of its effects.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <string>

#include "tests/hostile/fs/guest.hpp"

namespace {

using namespace cairn::hostile;

template <class Visit>
void for_each_attack(const Visit& visit) {
    for (const auto attacks : {attacks_on_socket(), attacks_on_segment(), attacks_on_shards()}) {
        for (const FsAttack& attack : attacks) {
            visit(attack);
        }
    }
}

void print(const FsTally& tally) {
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "{\"connections\": %llu, \"channels\": %llu, \"calls\": %llu, \"answers\": %llu, \"refusals\": %llu, "
        "\"hung_up\": %llu, \"leaks\": %llu, \"last_refusal\": \"%s\"}\n",
        number(tally.connections), number(tally.channels), number(tally.calls), number(tally.answers),
        number(tally.refusals), number(tally.hung_up), number(tally.leaks), tally.last_refusal.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    FsOptions options;
    std::string victim;
    std::string footer = "Attacks:\n";
    for_each_attack(
        [&footer](const FsAttack& attack) { footer += "  " + std::string(attack.name) + ": " + attack.what + '\n'; });
    CLI::App app("One attack on a daemon of the file system.");
    app.footer(footer);
    app.add_option("--socket", options.socket, "of the daemon")->required();
    app.add_option("--attack", options.attack, "which")->required();
    app.add_option("--seconds", options.seconds, "how long");
    app.add_option("--seed", options.seed, "of all chance");
    app.add_option("--victim", victim, "the id of somebody else's file, as cairn-fs stat has it");
    CLI11_PARSE(app, argc, argv);
    if (!victim.empty()) {
        unsigned long long place = 0;
        unsigned long long random = 0;
        if (std::sscanf(victim.c_str(), "%llx-%llx", &place, &random) != 2) {
            std::fprintf(stderr, "fs_hostile: %s is no id\n", victim.c_str());
            return 2;
        }
        options.victim = {place, random};
    }
    std::signal(SIGPIPE, SIG_IGN);
    FsAttacker attacker(options);
    const FsAttack* found = nullptr;
    for_each_attack([&](const FsAttack& attack) { found = options.attack == attack.name ? &attack : found; });
    if (found == nullptr) {
        std::fprintf(stderr, "fs_hostile: %s is no attack; see --help\n", options.attack.c_str());
        return 2;
    }
    found->run(attacker);
    print(attacker.tally);
    return 0;
}
