#include "apps/node/node.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/common/app.hpp"
#include "apps/common/command_line.hpp"
#include "apps/common/ports.hpp"
#include "pmd_glue/lcores.hpp"

namespace cairn::node {

namespace {

constexpr std::size_t kMessageBytes = std::size_t{32} << 20U;  // of each worker

}  // namespace

struct Node::Arguments {
    explicit Arguments(const std::string& text) : app(text + "; EAL arguments first, then --") {
        ports.private_ip = app::kPrivateIp;
        app::add_ports(app, ports);
        app::add_path_mtu(app, ports.path_mtu_bytes, "path MTU; both ends use the same")->capture_default_str();
        app::add_polling(app, spin);
        app::add_pcap(app, ports.pcap);
    }

    CLI::App app;
    app::PortOptions ports;
    bool spin = false;
    std::optional<pmd::Clock> clock;  // once EAL has started
};

// Ends the workers before EAL ends, however the program does.
class Node::End {
public:
    explicit End(Node& node) noexcept : node_(node) {}
    End(const End&) = delete;
    End& operator=(const End&) = delete;
    ~End() {
        node_.shared_.stopping.store(true);
        node_.workers_.clear();
        node_.ports_.reset();
    }

private:
    Node& node_;
};

Node::Node(std::string name, std::string what_it_does)
    : arguments_(std::make_unique<Arguments>(name + ": " + what_it_does)) {
    shared_.program = std::move(name);
}

Node::~Node() = default;

void Node::argument(const std::string& name, std::string& value, const std::string& what) {
    arguments_->app.add_option(name, value, what)->capture_default_str();
}

void Node::argument(const std::string& name, std::uint32_t& value, const std::string& what) {
    arguments_->app.add_option(name, value, what)->capture_default_str();
}

void Node::needed_argument(const std::string& name, std::string& value, const std::string& what) {
    arguments_->app.add_option(name, value, what)->required();
}

int Node::run(int argc, char** argv, const SetUp& set_up) {
    return run(argc, argv, set_up, [](Node& self) { return self.run_on_lcores(); });
}

int Node::run(int argc, char** argv, rpc::Task<> (*client)(NodeWorker&)) {
    return run(argc, argv, [client](NodeWorker& worker) -> Status {
        rpc::start(client(worker));
        return Nothing{};
    });
}

int Node::run(int argc, char** argv, const SetUp& set_up, const Loop& loop) {
    return app::run(shared_.program, argc, argv, [&](int count, char** texts, int first) {
        const End end(*this);
        return start(count, texts, first, set_up, loop);
    });
}

Result<int> Node::start(int argc, char** argv, int first, const SetUp& set_up, const Loop& loop) {
    const Status parsed = app::parse_arguments(arguments_->app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    arguments_->clock.emplace();
    app::PortOptions& options = arguments_->ports;
    app::note_given(arguments_->app, options);
    options.workers = pmd::worker_count();
    Result<app::Ports> opened = app::Ports::open(options);
    if (!opened.ok()) {
        return opened.error();
    }
    ports_ = std::make_unique<app::Ports>(std::move(opened).value());
    Status done = make_workers(*ports_);
    for (std::size_t i = 0; i < workers_.size() && done.ok(); ++i) {
        done = set_up(*workers_[i]);
    }
    if (done.ok()) {
        done = announce_services();
    }
    if (done.ok()) {
        done = ports_->start_capture();
    }
    if (done.ok()) {
        done = loop(*this);
    }
    ports_->stop_capture();
    return done.ok() ? Result<int>(shared_.exit_status.load()) : done.error();
}

Status Node::make_workers(app::Ports& ports) {
    for (std::uint16_t i = 0; i < pmd::worker_count(); ++i) {
        Result<pmd::HeapBlock> memory = pmd::HeapBlock::allocate(kMessageBytes, "messages");
        if (!memory.ok()) {
            return memory.error();
        }
        auto port = ports.make_port(i);
        if (!port.ok()) {
            return port.error();
        }
        const NodeWorkerConfig config{i, pmd::worker_count(), arguments_->ports.path_mtu_bytes};
        workers_.push_back(
            std::make_unique<NodeWorker>(config, std::move(port).value(), std::move(memory).value(), shared_));
        const Status opened = workers_.back()->open(now());
        if (!opened.ok()) {
            return opened;
        }
    }
    return Nothing{};
}

// Clients count up from worker 0 to find the workers of a service. So each worker opens the first services of the
// worker before it, or all of them.
Status Node::announce_services() {
    for (std::size_t i = 1; i < workers_.size(); ++i) {
        const std::vector<std::uint32_t>& before = workers_[i - 1]->services();
        const std::vector<std::uint32_t>& own = workers_[i]->services();
        const auto other = std::mismatch(own.begin(), own.end(), before.begin(), before.end()).first;
        if (other != own.end()) {
            return Error{fmt::format("worker {} opens service {} where worker {} does not", i, *other, i - 1),
                         "open the same services on all workers, in the same order, or on worker 0 alone"};
        }
    }
    const std::vector<std::uint32_t>& all = workers_.front()->services();
    for (std::size_t place = 0; place < all.size(); ++place) {
        const auto opened = std::count_if(workers_.begin(), workers_.end(),
                                          [place](const auto& worker) { return place < worker->services().size(); });
        const Status told = workers_.front()->announce(place, static_cast<std::uint16_t>(opened));
        if (!told.ok()) {
            return told;
        }
    }
    return Nothing{};
}

Status Node::run_on_lcores() {
    std::vector<worker::Task*> tasks;
    for (const auto& worker : workers_) {
        tasks.push_back(worker.get());
    }
    pmd::run_workers(tasks, *arguments_->clock, arguments_->spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    return Nothing{};
}

bool Node::stopping(Instant now) const noexcept {
    return pmd::stop_requested() ||
           std::all_of(workers_.begin(), workers_.end(), [now](const auto& worker) { return worker->finished(now); });
}

Instant Node::now() const noexcept {
    return arguments_->clock->now();
}

}  // namespace cairn::node
