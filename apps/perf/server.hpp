// The server of cairn-perf: accepts connections and does for each what its client's test needs.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "apps/perf/completion_room.hpp"
#include "apps/perf/passes.hpp"
#include "apps/perf/perf_worker.hpp"
#include "apps/perf/spare_blocks.hpp"
#include "lib/mem/region.hpp"
#include "lib/net/shares.hpp"

namespace cairn::perf {

constexpr std::uint32_t kMostOutstanding = 16384;  // messages of one client

class Server final : public PerfWorker {
public:
    Server(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port)
        : PerfWorker(options, seat, std::move(port)) {}
    ~Server() override;

    // To be called once, after open_device().
    Status prepare();
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    void absorb(const PerfWorker& other) override;
    [[nodiscard]] std::string json() const override;
    [[nodiscard]] std::string table() const override;

private:
    // From the kernel's it costs nothing until it is written to. EAL's is for ports that send from no other.
    struct GuestMemory {
        std::optional<mem::Region> mapped;
        SpareBlocks::Block heap;
        std::size_t wanted = 0;

        [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept {
            return (mapped ? mapped->bytes() : heap->bytes()).first(wanted);
        }
    };

    // A connection; at the front of its memory is what the client works on or sends to.
    struct Guest {
        verbs::ConnectionId id{};
        std::uint32_t index = 0;
        Hello hello{};
        Transport transport = Transport::Rc;
        net::IpAddress remote{};
        net::Shares<std::uint32_t>::Ticket unused_ticket = 0;  // until something was done over the connection
        Psn first_psn{};                                       // of a connection: that nothing was done with
        Instant heard_at{};                                    // when an unreliable one was
        MessageLayout layout{};
        GuestMemory memory;
        std::unique_ptr<verbs::Mr> mr;
        CompletionRoom::Place send_room;  // given back once the queue pair ended
        CompletionRoom::Place receive_room;
        std::optional<Channel> channel;
        std::uint64_t bytes = 0;          // of messages and queues
        std::uint64_t written_bytes = 0;  // of them, before the client did anything
        std::uint64_t received = 0;
        std::uint64_t heard = 0;    // of them, at heard_at
        std::uint64_t written = 0;  // the number of the message that is watched for
        std::uint64_t bad = 0;
        std::uint64_t receives_posted = 0;
        Instant up_at{};              // of a test both ways: since when we work on the client's memory
        std::uint64_t posted = 0;     // operations of ours
        std::uint64_t completed = 0;  // of them

        [[nodiscard]] bool unreliable() const noexcept { return transport != Transport::Rc; }
        // Whether each message takes a receive request, and how many there are.
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
    // Why not; empty: it is ready.
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
    std::uint32_t add_guest(std::unique_ptr<Guest> guest);  // its index
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

    std::array<verbs::Completion, 64> done_{};  // being looked at
    std::optional<CompletionRoom> sends_;       // once prepared
    std::optional<CompletionRoom> receives_;
    std::vector<std::unique_ptr<Guest>> guests_;  // places without one are free
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> watched_;                         // guests that write into our memory and wait for us to
    std::unordered_map<std::uint32_t, std::uint32_t> guest_of_;  // by connection
    std::unordered_map<std::uint32_t, std::uint32_t> guest_at_;  // by queue pair, of datagrams
    std::optional<Passes> passes_;                               // once prepared
    net::Shares<std::uint32_t> unused_;                          // guests that did nothing yet, as far as was looked
    std::uint64_t unused_bytes_ = 0;                             // that they have
    std::uint64_t unused_written_bytes_ = 0;
    net::HostTotals bytes_of_;  // that a host's guests have
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
