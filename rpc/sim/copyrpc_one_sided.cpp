#include "rpc/sim/copyrpc_one_sided.hpp"

#include <algorithm>

namespace cairn::sim {

namespace {

constexpr std::uint64_t kOpensEach = 12;  // requests until a process has opened all its places
constexpr std::uint64_t kMostAtOnce = 6;

}  // namespace

void CopyrpcOneSided::start(LinkedNode& node, copyrpc::Endpoint& endpoint) {
    Part& part = part_of(node);
    part = {};
    part.endpoint = &endpoint;
    part.memory.resize(std::size_t{kPlaces} * kPlaceBytes);
}

void CopyrpcOneSided::stop(LinkedNode& node) {
    for (Work* const work : part_of(node).pending) {
        node.oracle->check(!work->ends_with_endpoint, "a READ or WRITE that ends with its endpoint is told", &node);
        work->forgotten = true;
    }
    for (Opened& opened : opened_) {
        opened.alive = opened.alive && opened.server != node.host->index();
    }
    part_of(node) = {};
}

void CopyrpcOneSided::on_request(LinkedNode& node, SessionId by, const LinkedCall& call) {
    Part& part = part_of(node);
    if (call.session == 0 || part.places == kPlaces || world_.healed() || find(call.session) != nullptr ||
        !random_.chance(kMillion / kOpensEach)) {
        return;
    }
    const std::span<std::uint8_t> memory =
        std::span(part.memory).subspan(std::size_t{part.places} * kPlaceBytes, random_.between(1, kPlaceBytes));
    const auto rights = verbs::Rights{verbs::Right::RemoteRead} | verbs::Right::RemoteWrite;
    const auto place = part.endpoint->one_sided().open(by, memory, rights);
    if (!place.ok()) {
        return;  // the device has no room
    }
    ++part.places;
    ++counters_.opened;
    Opened& opened = opened_.emplace_back();
    opened.session = call.session;
    opened.server = node.host->index();
    opened.place = place.value();
    opened.memory = memory;
    opened.expected.assign(memory.begin(), memory.end());
}

CopyrpcOneSided::Opened* CopyrpcOneSided::find(std::uint64_t session) {
    const auto found = std::find_if(opened_.begin(), opened_.end(), [session](const Opened& opened) {
        return opened.alive && opened.session == session;
    });
    return found == opened_.end() ? nullptr : &*found;
}

bool CopyrpcOneSided::act(LinkedNode& node, const LinkedSession& session) {
    Opened* const opened = find(session.serial);
    if (opened == nullptr || !session.open || world_.healed() || random_.chance(kMillion / 3)) {
        return false;
    }
    for (std::uint64_t left = random_.between(1, kMostAtOnce); left > 0; --left) {
        post(node, session, *opened);
    }
    return true;
}

void CopyrpcOneSided::post(LinkedNode& node, const LinkedSession& session, Opened& opened) {
    Part& part = part_of(node);
    Work& work = works_.emplace_back();
    work.all = this;
    work.node = &node;
    work.opened = &opened;
    work.reads = random_.chance(kMillion / 2);
    work.memory.resize(random_.between(1, opened.place.bytes));
    work.ends_with_endpoint = random_.chance(kMillion / 4);
    std::vector<std::uint8_t> after = opened.expected;
    if (work.reads) {
        work.expected.assign(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(work.memory.size()));
    } else {
        std::generate(work.memory.begin(), work.memory.end(),
                      [this] { return static_cast<std::uint8_t>(random_.next()); });
        std::copy(work.memory.begin(), work.memory.end(), after.begin());
    }
    copyrpc::OneSidedWork posted;
    posted.place = opened.place;
    posted.memory = work.memory;
    posted.context = &work;
    posted.ends_with_endpoint = work.ends_with_endpoint;
    posted.completion = [](void* context, const rpc::CallResult& result) {
        auto& self = *static_cast<Work*>(context);
        self.all->complete(self, result);
    };
    copyrpc::OneSided& one_sided = part.endpoint->one_sided();
    const rpc::PostVerdict verdict =
        work.reads ? one_sided.read(session.id, posted, node.now()) : one_sided.write(session.id, posted, node.now());
    node.oracle->check(verdict == rpc::PostVerdict::Posted || node.ending != 0, "an open session READs and WRITEs",
                       &node);
    node.oracle->check(work.completions == 0, "nothing completes before it is posted", &node);
    if (verdict == rpc::PostVerdict::Posted) {
        opened.writes += work.reads ? 0 : 1;
        work.writes = opened.writes;
        opened.expected = std::move(after);
        part.pending.push_back(&work);
    }
}

void CopyrpcOneSided::complete(Work& work, const rpc::CallResult& result) {
    LinkedOracle& oracle = *work.node->oracle;
    ++work.completions;
    oracle.check(work.completions == 1 && !work.forgotten, "a READ or WRITE completes once", work.node);
    std::erase(part_of(*work.node).pending, &work);
    if (result.status != rpc::CallStatus::Ok) {
        ++counters_.ended;
        oracle.check(result.status == rpc::CallStatus::PeerLost || result.status == rpc::CallStatus::Disconnected,
                     "a READ or WRITE fails with its session alone", work.node);
        return;
    }
    const Opened& opened = *work.opened;
    if (work.reads) {
        ++counters_.reads;
        oracle.check(work.memory == work.expected, "what is READ is what was WRITTEN", work.node);
    } else {
        ++counters_.writes;
        // While no later WRITE was posted, all of the memory is known.
        oracle.check(!opened.alive || opened.writes != work.writes ||
                         std::equal(opened.memory.begin(), opened.memory.end(), opened.expected.begin()),
                     "what was WRITTEN is there", work.node);
    }
}

void CopyrpcOneSided::check_quiet(const LinkedNode& node) {
    node.oracle->check(part_of(node).pending.empty(), "no READ or WRITE stays pending once the network healed", &node);
}

}  // namespace cairn::sim
