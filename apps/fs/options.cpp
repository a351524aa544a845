#include "apps/fs/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "apps/common/command_line.hpp"

namespace cairn::fstool {

namespace {

constexpr const char* kAbout =
    "Works on a Cairn file system, by a daemon of this machine.\n"
    "Paths begin at the root of the file system; 'cairn:' may stand before them. cp takes paths without 'cairn:' as\n"
    "local ones, and '-' as standard input or output: cairn-fs cp data.bin cairn:/in/data.bin";

// Gives a command its paths: at least `least`, and at most `most` unless that is 0.
void add_paths(CLI::App& command, Options& options, int least, int most, const char* what) {
    CLI::Option* const paths = command.add_option("paths", options.paths, what);
    if (least != 0) {
        paths->required();
    }
    paths->expected(least != 0 ? least : 1, most != 0 ? most : CLI::detail::expected_max_vector_size);
}

CLI::Option* add_mode(CLI::App& command, Options& options, const std::string& name) {
    const auto parse = [&options](const std::string& text) {
        char* end = nullptr;
        const unsigned long mode = std::strtoul(text.c_str(), &end, 8);
        const bool is_mode = !text.empty() && *end == 0 && mode <= 07777;
        options.mode = is_mode ? static_cast<std::uint32_t>(mode) : options.mode;
        return is_mode;
    };
    return command.add_option_function<std::string>(
        name,
        [parse, name](const std::string& text) {
            if (!parse(text)) {
                throw CLI::ValidationError(name, "'" + text + "' is no mode: give octal digits, as 644");
            }
        },
        "permissions, in octal digits");
}

void add_looking_commands(CLI::App& app, Options& options) {
    CLI::App& ls = *app.add_subcommand("ls", "list directories");
    ls.add_flag("-l", options.is_long, "types, permissions, owners, sizes and times, too");
    add_paths(ls, options, 0, 0, "what to list; / otherwise");
    add_paths(*app.add_subcommand("cat", "write files to standard output"), options, 1, 0, "files");
    add_paths(*app.add_subcommand("stat", "attributes of files"), options, 1, 0, "files");
    app.add_subcommand("df", "how much room there is");
    app.add_subcommand(
        "fsck",
        "look for what is wrong with names, files and chunks, as root or as the daemons' user; 1 if there is any");
    app.add_subcommand("scrub",
                       "compare all data with their checksums, as root or as the daemons' user; 1 if any are damaged");
    app.add_subcommand("status", "the daemon's shards, the slot table, the room of each shard, the daemon's counters");
}

void add_changing_commands(CLI::App& app, Options& options) {
    CLI::App& cp = *app.add_subcommand("cp", "copy files; 'cairn:' stands before paths of the file system");
    cp.add_flag("-r,--recursive", options.recursive, "directories, too");
    add_paths(cp, options, 2, 0, "sources, then the target");
    CLI::App& mkdir = *app.add_subcommand("mkdir", "make directories");
    mkdir.add_flag("-p,--parents", options.with_parents, "parents too; what is there is no error");
    add_mode(mkdir, options, "-m,--mode");
    add_paths(mkdir, options, 1, 0, "directories");
    CLI::App& rm = *app.add_subcommand("rm", "remove files");
    rm.add_flag("-r,--recursive", options.recursive, "directories and what is in them, too");
    rm.add_flag("-f,--force", options.force, "what is not there is no error");
    add_paths(rm, options, 1, 0, "files");
    CLI::App& mv = *app.add_subcommand("mv", "rename or move files");
    mv.add_flag("-n,--no-clobber", options.no_replace, "replace nothing");
    add_paths(mv, options, 2, 0, "sources, then the target");
    CLI::App& ln = *app.add_subcommand("ln", "make a link");
    ln.add_flag("-s,--symbolic", options.symbolic, "a symbolic one");
    add_paths(ln, options, 2, 2, "target, then the link");
    CLI::App& chmod = *app.add_subcommand("chmod", "change permissions");
    add_mode(chmod, options, "mode")->required();
    add_paths(chmod, options, 1, 0, "files");
    add_paths(*app.add_subcommand("touch", "set times to now; make what is not there"), options, 1, 0, "files");
    CLI::App& truncate = *app.add_subcommand("truncate", "set sizes");
    truncate.add_option("-s,--size", options.size, "bytes, or as 4K, 1M, 2G")
        ->required()
        ->transform(CLI::AsSizeValue(false));
    add_paths(truncate, options, 1, 0, "files");
}

void add_bench(CLI::App& app, Options& options) {
    CLI::App& bench = *app.add_subcommand("bench", "measure the file system; prints one JSON object");
    bench
        .add_option("what", options.bench,
                    "easy: 1 MiB pieces; hard: 47,008-byte pieces; md: names; small: 3,901-byte files; fill: such "
                    "files, which\n"
                    "stay; balance: how evenly names are spread over 100 shards, without a daemon")
        ->required()
        ->check(CLI::IsMember({"easy", "hard", "md", "small", "fill", "balance"}));
    CLI::Option* const elsewhere = bench.add_flag(
        "--elsewhere", options.elsewhere,
        "names and chunks of other daemons alone: all calls cross the network; of easy, md, small, fill");
    bench
        .add_option("--directory", options.directory,
                    "measure a directory of the kernel's instead, which is made and removed")
        ->excludes(elsewhere);
    bench.add_option("--size", options.size, "bytes of a file: easy, hard")
        ->default_val(std::uint64_t{256} << 20U)
        ->transform(CLI::AsSizeValue(false));
    bench.add_option("--files", options.files, "files: md, small, fill")
        ->default_val(100'000)
        ->check(CLI::Range(1, 100'000'000));
    bench.add_option("--in-flight", options.in_flight, "operations under way together: md, small, fill")
        ->default_val(32)
        ->check(CLI::Range(1, 4096));
    bench.add_flag("--segment-buffers", options.shares_buffers,
                   "read to and write from memory that the daemon shares: easy, hard");
    bench.add_flag("--relaxed", options.relaxed, "sizes and times of writes go to files' homes later");
}

// Returns the first argument that is neither an option nor the value of one, if no command has that name.
std::string_view unknown_command(const CLI::App& app, int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--socket" || argument == "--timeout") {
            ++i;
        } else if (!argument.starts_with('-')) {
            const std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
            const bool is_known = std::ranges::any_of(
                commands, [argument](const CLI::App* command) { return command->get_name() == argument; });
            return is_known ? "" : argument;
        }
    }
    return "";
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
    Options options;
    CLI::App app(kAbout);
    app.add_option("--socket", options.socket, "the daemon's socket")->envname("CAIRN_FS_SOCKET");
    app.add_option("--timeout", options.timeout_s, "seconds to wait for a daemon that is gone or silent")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    app.require_subcommand(1);
    add_looking_commands(app, options);
    add_changing_commands(app, options);
    add_bench(app, options);
    if (const std::string_view unknown = unknown_command(app, argc, argv); !unknown.empty()) {
        return Error{"'" + std::string(unknown) + "' is no command", "--help lists the commands"};
    }
    if (const Status parsed = app::parse_arguments(app, argc, argv, 1); !parsed.ok()) {
        return parsed.error();
    }
    if (options.elsewhere && options.bench == "hard") {
        return Error{"--elsewhere is for whole chunks and small files, and pieces of hard lie across", "choose easy"};
    }
    options.command = app.get_subcommands().front()->get_name();
    return options;
}

}  // namespace cairn::fstool
