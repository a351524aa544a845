// Ports that send to each other for as long as they live.
#pragma once

#include <vector>

namespace cairn::test {

template <class Port>
class Joined {
public:
    // Joins one way. If several ports are joined, a datagram goes to the one that has its address, else to the first.
    void join(Port& other) {
        peers_.push_back(&other);
        static_cast<Joined&>(other).joined_by_.push_back(this);
    }
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

protected:
    Joined() = default;
    ~Joined() {
        for (Joined* const from : joined_by_) {
            std::erase_if(from->peers_, [this](Port* peer) { return static_cast<Joined*>(peer) == this; });
        }
        for (Joined* const to : peers_) {
            std::erase(to->joined_by_, this);
        }
    }

    std::vector<Port*> peers_;

private:
    std::vector<Joined*> joined_by_;
};

}  // namespace cairn::test
