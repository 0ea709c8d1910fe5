// SPDX-License-Identifier: Apache-2.0
// What is ordered of slurmctld, from what it prints. The records are those of Slurm 22.05 and of
// its manual (scontrol show reservation).
#include "pool/reservations.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <random>

namespace muster::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Names = std::set<std::string>;

WallTime at(const char* text) { return *parseWallTime(text); }

const WallTime kNow = at("2026-11-26T12:00:00Z");
const WallTime kFrom = at("2026-11-26T22:00:00Z"), kUntil = at("2026-11-27T02:00:00Z");

Reservation wanted(Names nodes = {"gpu001", "gpu002"}) {
  return {"r-1f2e3d4c5b", "batch", std::move(nodes), kFrom, kUntil, true};
}
const std::string kName = "muster-hall-2-r-1f2e3d4c5b-batch";

SlurmReservation present(Names nodes = {"gpu001", "gpu002"}, const std::string& name = kName) {
  return {name, std::move(nodes), kFrom, kUntil, false};
}

auto orders(const std::vector<Reservation>& wanted, const std::vector<SlurmReservation>& present,
            WallTime now = kNow) {
  return reservationOrders("hall-2", wanted, present, now);
}

TEST(Reservations, readsWhatScontrolPrints) {
  const auto read = parseReservations(
      "ReservationName=root_1 StartTime=2026-11-26T22:00:00 EndTime=2026-11-27T02:00:00 "
      "Duration=04:00:00 Nodes=gpu[001-003,007] NodeCnt=4 CoreCnt=4 Features=(null) "
      "PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=4 Users=root Groups=(null) "
      "Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a "
      "MaxStartDelay=(null)\n"
      "ReservationName=lic StartTime=2026-11-26T08:00:00 EndTime=2026-11-27T02:00:00 "
      "Nodes=(null) Licenses=foo:4 State=ACTIVE\n");
  ASSERT_TRUE(read) << read.error().str();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at(0).nodes, (Names{"gpu001", "gpu002", "gpu003", "gpu007"}));
  EXPECT_EQ(read->at(0).from, kFrom);
  EXPECT_EQ(read->at(0).until, kUntil);
  EXPECT_FALSE(read->at(0).is_active);
  EXPECT_TRUE(read->at(1).is_active);
  EXPECT_THAT(read->at(1).nodes, IsEmpty());
  EXPECT_THAT(*parseReservations("No reservations in the system\n"), IsEmpty());
  EXPECT_FALSE(parseReservations("ReservationName=x StartTime=tomorrow EndTime=now\n"));
  EXPECT_FALSE(parseReservations("ReservationName=x\n"));
}

TEST(Reservations, areMustersByTheirName) {
  EXPECT_EQ(reservationName("hall-2", wanted()), kName);
  EXPECT_TRUE(isOwnReservation(kName, "hall-2"));
  for (const auto* other :
       {"muster-hall-2-maintenance", "muster-hall-r-1f2e3d4c5b-batch", "hall-2-r-1f2e3d4c5b-batch",
        "muster-hall-2-r-1f2e3d4c5b", "muster-hall-2-r-1f2e3d4c5b-", "muster-hall-2-r--batch",
        "muster-hall-2-r-anna-batch", "root_1", ""})
    EXPECT_FALSE(isOwnReservation(other, "hall-2")) << other;
  EXPECT_FALSE(isOwnReservation(kName, "hall")) << "of another muster at the same Slurm";
}

TEST(Reservations, areMadeOnceMovedAndDeleted) {
  EXPECT_THAT(
      orders({wanted()}, {}),
      ElementsAre(ElementsAre("create", "reservation", "ReservationName=" + kName,
                              "StartTime=2026-11-26T22:00:00", "EndTime=2026-11-27T02:00:00",
                              "Users=root", "Flags=MAINT,IGNORE_JOBS", "Nodes=gpu[001-002]")));
  EXPECT_THAT(orders({wanted()}, {present()}), IsEmpty());
  auto later = wanted({"gpu001"});
  later.from += std::chrono::hours(1);
  EXPECT_THAT(orders({later}, {present()}),
              ElementsAre(ElementsAre("update", "ReservationName=" + kName,
                                      "StartTime=2026-11-26T23:00:00", "Nodes=gpu001")));
  EXPECT_THAT(orders({}, {present()}),
              ElementsAre(ElementsAre("delete", "ReservationName=" + kName)));
  EXPECT_THAT(orders({wanted({})}, {present()}),
              ElementsAre(ElementsAre("delete", "ReservationName=" + kName)));
  EXPECT_THAT(orders({wanted()}, {}, kFrom), IsEmpty()) << "its time has come";
}

TEST(Reservations, ofARunThatHasBegunOnlyShrink) {
  auto begun = wanted({"gpu002", "gpu009"});
  begun.is_ahead = false;
  begun.from = begun.until = WallTime{};
  auto active = present();
  active.is_active = true;
  EXPECT_THAT(orders({begun}, {active}),
              ElementsAre(ElementsAre("update", "ReservationName=" + kName, "Nodes=gpu002")));
  EXPECT_THAT(orders({begun}, {present({"gpu002"})}), IsEmpty());
  EXPECT_THAT(orders({begun}, {present({"gpu001"})}),
              ElementsAre(ElementsAre("delete", "ReservationName=" + kName)));
  EXPECT_THAT(orders({begun}, {}), IsEmpty());
}

/// Slurm does not move what has begun: a run that waits for the next window.
TEST(Reservations, thatHaveBegunAreMadeAnew) {
  auto active = present();
  active.is_active = true;
  auto next = wanted();
  next.from += std::chrono::hours(24);
  next.until += std::chrono::hours(24);
  EXPECT_THAT(orders({next}, {active}),
              ElementsAre(ElementsAre("delete", "ReservationName=" + kName)));
}

/// Whatever is there and whatever is wanted: nobody else's reservation is named, and after two
/// looks nothing is left to do.
TEST(Reservations, settleAndTouchNobodyElses) {
  std::mt19937 random(3);
  const auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const auto nodes = [&] {
    Names out;
    for (int i = 1; i <= 4; ++i)
      if (upTo(1)) out.insert(fmt::format("gpu{:03}", i));
    return out;
  };
  const std::vector<std::string> runs{"r-aaaa000001", "r-aaaa000002", "r-aaaa000003"};
  for (int round = 0; round < 2'000; ++round) {
    std::vector<Reservation> wanted;
    std::vector<SlurmReservation> present;
    for (const auto& run : runs) {
      if (upTo(1)) {
        Reservation each{run,
                         "batch",
                         nodes(),
                         kNow + std::chrono::hours(upTo(4) - 1),
                         kNow + std::chrono::hours(5 + upTo(2)),
                         upTo(2) > 0};
        wanted.push_back(each);
      }
      if (upTo(1))
        present.push_back({"muster-hall-2-" + run + "-batch", nodes(),
                           kNow + std::chrono::hours(upTo(4) - 1),
                           kNow + std::chrono::hours(5 + upTo(2)), upTo(1) > 0});
    }
    const SlurmReservation others[] = {
        {"root_7", nodes(), kNow, kUntil, true},
        {"muster-hall-r-aaaa000001-batch", nodes(), kNow, kUntil, false}};
    for (const auto& other : others) present.push_back(other);
    for (int look = 0; look < 2; ++look)
      for (const auto& order : orders(wanted, present)) {
        const auto& name = order[0] == "create" ? order[2] : order[1];
        EXPECT_TRUE(isOwnReservation(name.substr(16), "hall-2")) << name;
        // As slurmctld carries it out.
        auto found = std::ranges::find(present, name.substr(16), &SlurmReservation::name);
        if (order[0] == "delete") {
          ASSERT_NE(found, present.end());
          present.erase(found);
          continue;
        }
        if (order[0] == "create") {
          ASSERT_EQ(found, present.end());
          found =
              present.insert(present.end(), SlurmReservation{name.substr(16), {}, {}, {}, false});
        }
        ASSERT_NE(found, present.end());
        for (const auto& word : order) {
          if (word.starts_with("StartTime=")) {
            EXPECT_FALSE(found->is_active) << "Slurm refuses to move one that is active";
            found->from = at((word.substr(10) + "Z").c_str());
          }
          if (word.starts_with("EndTime=")) found->until = at((word.substr(8) + "Z").c_str());
          if (!word.starts_with("Nodes=")) continue;
          const auto read = parseReservations("ReservationName=x StartTime=2026-11-26T22:00:00 " +
                                              word + " EndTime=2026-11-27T02:00:00\n");
          ASSERT_TRUE(read);
          found->nodes = read->at(0).nodes;
          EXPECT_FALSE(found->nodes.empty()) << "an empty list means any nodes to Slurm";
        }
      }
    EXPECT_THAT(orders(wanted, present), IsEmpty()) << round;
    for (const auto& other : others)
      EXPECT_NE(std::ranges::find(present, other.name, &SlurmReservation::name), present.end());
  }
}

}  // namespace
}  // namespace muster::pool
