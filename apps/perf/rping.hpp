// The exchange of librdmacm's rping, compatible with rping on other hosts. The client offers memory. The server READs
// it and WRITEs the contents to other memory of the client, which compares the two.
#pragma once

#include <array>
#include <unordered_map>

#include "apps/perf/perf_worker.hpp"
#include "lib/telemetry/histogram.hpp"

namespace cairn::perf {

// The contents of either end's SENDs: memory of the client. The contents of the server's SENDs are ignored: they mean
// "go on".
struct RawOffer {
    Be64 address;
    Be32 rkey;
    Be32 bytes;
};
static_assert(sizeof(RawOffer) == 16 && alignof(RawOffer) == 1);

// One end of one connection: its queue pair, and memory for two texts and two offers.
class PingEnd {
public:
    static constexpr std::uint32_t kLongest = 65536;

    // Makes an end. The arguments outlive it.
    static Result<std::unique_ptr<PingEnd>> create(verbs::Device& device, verbs::Pd& pd, verbs::Cq& completions,
                                                   std::uint32_t text_bytes);

    [[nodiscard]] verbs::Qp& qp() noexcept { return *qp_; }
    [[nodiscard]] std::span<std::uint8_t> text(unsigned which) const noexcept {
        return mr_->bytes().subspan(std::size_t{which} * text_bytes_, text_bytes_);
    }
    [[nodiscard]] RawOffer offer_of(unsigned which) const noexcept;
    // Returns the offer that was received last.
    [[nodiscard]] RawOffer received() const noexcept;

    // Post requests. `tag` is the wr_id of the completion. They return false if a queue is full or the connection is
    // down.
    [[nodiscard]] bool post_receive(std::uint64_t tag);
    [[nodiscard]] bool tell(const RawOffer& offer, std::uint64_t tag);
    // READs into the first text, or WRITEs from it.
    [[nodiscard]] bool move(verbs::WorkOpcode opcode, const RawOffer& remote, std::uint32_t bytes, std::uint64_t tag);

private:
    PingEnd() = default;
    [[nodiscard]] std::uint8_t* place_of(std::uint64_t offset) const noexcept { return mr_->bytes().data() + offset; }
    [[nodiscard]] std::uint64_t offer_place(unsigned which) const noexcept {
        return std::uint64_t{2} * text_bytes_ + which * sizeof(RawOffer);
    }

    std::uint32_t text_bytes_ = 0;
    std::unique_ptr<pmd::HeapBlock> memory_;
    std::unique_ptr<verbs::Mr> mr_;
    std::unique_ptr<verbs::Qp> qp_;
};

class RpingServer final : public PerfWorker {
public:
    RpingServer(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port)
        : PerfWorker(options, seat, std::move(port)) {}
    ~RpingServer() override;
    // Prepares the server. Called once, after open_device().
    Status prepare();
    [[nodiscard]] bool finished(Instant now) const noexcept override;
    [[nodiscard]] std::string json() const override;
    [[nodiscard]] std::string table() const override;

private:
    enum class Stage : std::uint8_t { AwaitsSource, Reads, AwaitsSink, Writes };
    struct Guest {
        std::unique_ptr<PingEnd> end;
        Stage stage = Stage::AwaitsSource;
    };

    [[nodiscard]] bool step(Instant now) override;
    void on_event(const cm::Event& event, Instant now) override;
    void look(Instant now) override;
    [[nodiscard]] std::size_t collect(Instant now);
    void admit(verbs::ConnectionId id, Instant now);
    // Returns false if the connection has to end.
    [[nodiscard]] bool on_completion(Guest& guest, const verbs::Completion& completion);
    [[nodiscard]] bool on_offer(Guest& guest, std::uint64_t tag);

    std::unique_ptr<verbs::Cq> completions_;
    std::unordered_map<std::uint32_t, Guest> guests_;  // by connection
    std::uint64_t pings_ = 0;
    std::uint64_t connections_ = 0;
    std::uint64_t broken_ = 0;
};

class RpingClient final : public PerfWorker {
public:
    RpingClient(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port, const net::IpAddress& peer)
        : PerfWorker(options, seat, std::move(port)), peer_(peer) {}
    ~RpingClient() override;
    Status prepare(Instant now);
    [[nodiscard]] bool finished(Instant now) const noexcept override { return failed() || (now >= over_at_); }
    [[nodiscard]] std::string json() const override;
    [[nodiscard]] std::string table() const override;

private:
    enum class Stage : std::uint8_t { Connecting, Offered, Awaits, Leaving };

    [[nodiscard]] bool step(Instant now) override;
    void on_event(const cm::Event& event, Instant now) override;
    void look(Instant now) override;
    void start_ping(Instant now);
    void on_go_on(Instant now);

    net::IpAddress peer_;
    std::unique_ptr<verbs::Ah> way_;
    std::unique_ptr<verbs::Cq> completions_;
    std::unique_ptr<PingEnd> end_;
    verbs::ConnectionId id_{};
    Stage stage_ = Stage::Connecting;
    bool asked_ = false;
    std::uint64_t pings_ = 0;
    Instant start_at_{};
    Instant pinged_at_{};
    Instant progress_at_{};
    Instant over_at_ = Instant::never();
    telemetry::Histogram round_trip_ns_;
};

}  // namespace cairn::perf
