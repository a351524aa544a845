// The server of cairn-perf. It accepts connections, and does for each one the work that its client's test needs.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "apps/perf/completion_room.hpp"
#include "apps/perf/passes.hpp"
#include "apps/perf/perf_worker.hpp"
#include "apps/perf/spare_blocks.hpp"
#include "lib/net/shares.hpp"

namespace cairn::perf {

constexpr std::uint32_t kMostOutstanding = 16384;  // messages of one client

class Server final : public PerfWorker {
public:
    Server(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port)
        : PerfWorker(options, seat, std::move(port)) {}
    ~Server() override;

    // Prepares the server. Called once, after open_device().
    Status prepare();
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    void absorb(const PerfWorker& other) override;
    [[nodiscard]] std::string json() const override;
    [[nodiscard]] std::string table() const override;

private:
    struct GuestMemory {
        SpareBlocks::Block heap;
        std::size_t wanted = 0;  // of its bytes

        [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return heap->bytes().first(wanted); }
    };

    // A client's connection. The front of its memory is for the client's operations.
    struct Guest {
        verbs::ConnectionId id{};
        std::uint32_t index = 0;
        Hello hello{};
        Transport transport = Transport::Rc;
        net::IpAddress remote{};
        net::Shares<std::uint32_t>::Ticket unused_ticket = 0;  // until the connection was used
        Psn first_psn{};                                       // of a connection: the next one while it is unused
        Instant heard_at{};                                    // time of the last message of an unreliable client
        MessageLayout layout{};
        GuestMemory memory;
        std::unique_ptr<verbs::Mr> mr;
        CompletionRoom::Place send_room;  // given back after the queue pair has ended
        CompletionRoom::Place receive_room;
        std::optional<Channel> channel;
        std::uint64_t bytes = 0;          // of messages and queues
        std::uint64_t written_bytes = 0;  // of these, written before the client did anything
        std::uint64_t received = 0;
        std::uint64_t heard = 0;    // of these, those that had come at heard_at
        std::uint64_t written = 0;  // the number of the next message to be watched for
        std::uint64_t bad = 0;
        std::uint64_t receives_posted = 0;
        Instant up_at{};              // in a test of both directions: start of the server's operations
        std::uint64_t posted = 0;     // operations of the server
        std::uint64_t completed = 0;  // of these

        [[nodiscard]] bool unreliable() const noexcept { return transport != Transport::Rc; }
        // Return whether each message takes a receive request, and the number of these requests.
        [[nodiscard]] bool takes_receives() const noexcept {
            return hello.operation == Operation::Send || (unreliable() && hello.test == Test::Bandwidth);
        }
        [[nodiscard]] std::uint32_t receives() const noexcept;
        [[nodiscard]] std::span<std::uint8_t> message(std::uint64_t number) const noexcept {
            return mr->bytes().subspan(layout.offset(number), layout.bytes);
        }
    };

    [[nodiscard]] bool step(Instant now) override;
    void on_event(const cm::Event& event, Instant now) override;
    void look(Instant now) override;

    void admit(const cm::Requested& requested, Instant now);
    // Makes the client's connection ready. Returns why it is refused; empty if it is ready.
    [[nodiscard]] std::string prepare_guest(Guest& guest, std::span<const std::uint8_t> said, Instant now);
    [[nodiscard]] bool make_room(const Guest& guest, Instant now);
    [[nodiscard]] static bool is_used(Guest& guest) noexcept;
    void count_as_used(Guest& guest);
    [[nodiscard]] Status take_completions(Guest& guest);
    [[nodiscard]] Result<GuestMemory> allocate(std::size_t bytes);
    void keep_spare(Guest& guest);
    [[nodiscard]] bool look_at_own(const Guest& guest);
    Status make_guest(Guest& guest);
    [[nodiscard]] static MessageLayout layout_of(const Guest& guest) noexcept;
    [[nodiscard]] verbs::QpCapacity capacity_of(const Guest& guest) const noexcept;
    void measure(Guest& guest) const noexcept;
    void remove_if_over(const cm::Event& event, Instant now);
    [[nodiscard]] RawPathMtu path_mtu_offer() const;
    [[nodiscard]] static RawAnswer answer_of(const Guest& guest);
    [[nodiscard]] RawFarewell end_of(Guest& guest, Instant now);
    [[nodiscard]] static std::span<const std::uint8_t> bytes_of_text(std::string_view text) noexcept;
    std::uint32_t add_guest(std::unique_ptr<Guest> guest);  // returns its index
    void part_from(Guest& guest, Instant now);
    void remove(std::uint32_t index, Instant now);
    void probe_guests(Instant now);
    void probe(Guest& guest, Instant now);
    [[nodiscard]] Guest* find(verbs::ConnectionId id) noexcept;

    // server_datagrams.cpp
    void on_asked(const cm::DatagramRequested& asked, Instant now);
    void tell_pass(const cm::DatagramRequested& asked, Instant now);
    void part_from_datagrams(const cm::DatagramRequested& asked, const RawLeave& leave, Instant now);

    // server_work.cpp
    [[nodiscard]] std::size_t collect(Instant now);
    [[nodiscard]] std::size_t collect_messages();
    void on_message(Guest& guest, const verbs::Completion& completion);
    [[nodiscard]] bool look_at_memory(Guest& guest);
    void post_receive(Guest& guest);
    void start_back(Guest& guest, Instant now);
    void post_back(Guest& guest);
    [[nodiscard]] static bool post(Guest& guest, const verbs::SendRequest& request) noexcept;
    void answer(Guest& guest, verbs::WorkOpcode opcode, std::uint64_t place, std::uint32_t immediate);

    std::array<verbs::Completion, 64> done_{};  // completions in hand
    std::optional<CompletionRoom> sends_;       // once prepared
    std::optional<CompletionRoom> receives_;
    std::vector<std::unique_ptr<Guest>> guests_;  // an empty place is free
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> watched_;  // connections of clients that write into the server's memory and wait for its
                                          // answer
    std::unordered_map<std::uint32_t, std::uint32_t> guest_of_;  // by connection
    std::unordered_map<std::uint32_t, std::uint32_t> guest_at_;  // by queue pair of datagrams
    std::optional<Passes> passes_;                               // once prepared
    net::Shares<std::uint32_t> unused_;                          // connections that did nothing, as far as is known
    std::uint64_t unused_bytes_ = 0;                             // that these connections hold
    std::uint64_t unused_written_bytes_ = 0;
    net::HostTotals bytes_of_;  // that each host's connections hold
    SpareBlocks spares_;
    std::uint32_t next_probe_ = 0;
    Instant probe_at_{};
    std::uint64_t connections_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t received_bytes_ = 0;
    std::uint64_t bad_ = 0;
};

}  // namespace cairn::perf
