// Kept requests and the ways in which they end.
#include "rpc/common/kept_request.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace cairn::rpc {
namespace {

struct Keeper final : RequestKeeper {
    explicit Keeper(std::vector<std::uint64_t>& numbers) : dropped(numbers) {}
    void keep(const RequestHandle&) noexcept override {}
    bool drop(const RequestHandle& request) noexcept override {
        dropped.push_back(request.request_number);
        return true;
    }
    bool decline(const RequestHandle&) noexcept override { return true; }
    std::vector<std::uint64_t>& dropped;
};

KeptRequest kept(Keeper& keeper, std::uint64_t number) {
    return {keeper, {SessionId{7}, number}};
}

TEST(KeptRequest, IsDroppedOnceByItsLastOwner) {
    std::vector<std::uint64_t> dropped;
    Keeper keeper{dropped};
    {
        KeptRequest first = kept(keeper, 1);
        KeptRequest second = std::move(first);
        EXPECT_EQ(second.handle().request_number, 1U);
        EXPECT_TRUE(dropped.empty());
    }
    EXPECT_EQ(dropped, std::vector<std::uint64_t>{1});
}

TEST(KeptRequest, IsDroppedByWhatIsPutInItsPlace) {
    std::vector<std::uint64_t> dropped;
    Keeper keeper{dropped};
    KeptRequest place = kept(keeper, 1);
    place = kept(keeper, 2);
    EXPECT_EQ(dropped, std::vector<std::uint64_t>{1});
    place = KeptRequest{};
    EXPECT_EQ(dropped, (std::vector<std::uint64_t>{1, 2}));
    place.drop();
    EXPECT_EQ(dropped.size(), 2U);
}

TEST(KeptRequest, OutlivesItsEndpoint) {
    std::vector<std::uint64_t> dropped;
    std::optional<Keeper> keeper{dropped};
    std::vector<KeptRequest> those;
    for (std::uint64_t number = 0; number < 5; ++number) {
        those.push_back(kept(*keeper, number));
    }
    those.erase(those.begin() + 2);
    those.erase(those.begin());
    those.pop_back();
    EXPECT_EQ(dropped, (std::vector<std::uint64_t>{2, 0, 4}));
    keeper.reset();
    those.clear();
    EXPECT_EQ(dropped.size(), 3U);
}

}  // namespace
}  // namespace cairn::rpc
