// Commands that change names and attributes: mkdir, rm, mv, ln, chmod, touch, truncate.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "apps/fs/session.hpp"

namespace cairn::fstool {

namespace {

// Makes the directory and its parents. Returns an errno. An existing directory is no error.
int make_with_parents(Session& session, const std::string& path) {
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
        const std::string parent = path.substr(0, at);
        const int error = session.fs.mkdir(parent).wait().error;
        if (error != 0 && error != EEXIST) {
            return error;
        }
    }
    const int error = session.fs.mkdir(path, session.options.mode).wait().error;
    return error == EEXIST && session.is_directory(path) ? 0 : error;
}

void remove_tree(Session& session, const std::string& path) {
    std::vector<std::string> names;
    const int error = for_each_name(
        session.fs, path, [&](const fs::DirectoryEntry& entry) { names.push_back(joined(path, entry.name)); });
    if (!session.check("read directory", path, error)) {
        return;
    }
    for (const std::string& name : names) {
        const int failed = session.fs.unlink(name).wait().error;
        if (failed == EISDIR || failed == EPERM) {
            remove_tree(session, name);
        } else {
            (void)session.check("remove", name, failed);
        }
    }
    (void)session.check("remove", path, session.fs.rmdir(path).wait().error);
}

// Calls `each` with each source and its target. The last path of the command is the target of all.
template <class Each>
void for_each_source(Session& session, const Each& each) {
    std::vector<std::string> sources = session.options.paths;
    const std::string target = inner_path(sources.back());
    sources.pop_back();
    const bool is_into = session.is_directory(target);
    if (sources.size() > 1 && !is_into) {
        session.complain("use as target", target, ENOTDIR);
        return;
    }
    for (const std::string& source : sources) {
        each(source, session.target_of(source, target, is_into));
    }
}

}  // namespace

void make_directories(Session& session) {
    for (const std::string& path : session.options.paths) {
        const std::string inner = inner_path(path);
        const int error = session.options.with_parents ? make_with_parents(session, inner)
                                                       : session.fs.mkdir(inner, session.options.mode).wait().error;
        (void)session.check("create directory", path, error);
    }
}

void remove(Session& session) {
    for (const std::string& path : session.options.paths) {
        const std::string inner = inner_path(path);
        const fs::Outcome<fs::Attributes> found = session.fs.lstat(inner).wait();
        if (found.ok() && S_ISDIR(found.value.mode) && session.options.recursive) {
            remove_tree(session, inner);
            continue;
        }
        const int error = found.ok() ? session.fs.unlink(inner).wait().error : found.error;
        if (error != ENOENT || !session.options.force) {
            (void)session.check("remove", path, error);
        }
    }
}

void move(Session& session) {
    for_each_source(session, [&session](const std::string& source, const std::string& target) {
        const int error = session.fs.rename(inner_path(source), target, session.options.no_replace).wait().error;
        if (!session.options.no_replace || error != EEXIST) {
            (void)session.check(fmt::format("move to '{}'", target), source, error);
        }
    });
}

void make_link(Session& session) {
    for_each_source(session, [&session](const std::string& source, const std::string& target) {
        const std::string from = inner_path(source);
        const int error = session.options.symbolic ? session.fs.symlink(from, target).wait().error
                                                   : session.fs.link(from, target).wait().error;
        (void)session.check("create link", target, error);
    });
}

void change_mode(Session& session) {
    for (const std::string& path : session.options.paths) {
        (void)session.check("change permissions of", path,
                            session.fs.chmod(inner_path(path), session.options.mode).wait().error);
    }
}

void touch(Session& session) {
    for (const std::string& path : session.options.paths) {
        const std::string inner = inner_path(path);
        int error = session.fs.utimens(inner, {}).wait().error;
        if (error == ENOENT) {
            const fs::Outcome<fs::File*> made = session.fs.open(inner, O_CREAT | O_WRONLY).wait();
            error = made.ok() ? session.fs.close(*made.value).wait().error : made.error;
        }
        (void)session.check("touch", path, error);
    }
}

void truncate(Session& session) {
    for (const std::string& path : session.options.paths) {
        const std::string inner = inner_path(path);
        int error = session.fs.truncate(inner, session.options.size).wait().error;
        if (error == ENOENT) {
            const fs::Outcome<fs::File*> made = session.fs.open(inner, O_CREAT | O_WRONLY).wait();
            error = made.error;
            if (made.ok()) {
                error = session.fs.truncate(*made.value, session.options.size).wait().error;
                (void)session.fs.close(*made.value).wait();
            }
        }
        (void)session.check("set the size of", path, error);
    }
}

}  // namespace cairn::fstool
