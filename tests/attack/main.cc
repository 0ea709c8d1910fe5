// SPDX-License-Identifier: Apache-2.0
// The attack suite (adr/0212): a real controller on a loopback address, attacked as a tenant, a
// rogue BMC, a mirror or a careless operator would, while honest requests go on beside it. Every
// attack has a bound in time and count, and nothing leaves this machine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/io/process.h"
#include "tests/attack/honest_client.h"
#include "tests/attack/known_open.h"
#include "tests/attack/store_writer.h"

namespace muster::attack {
namespace {

constexpr std::size_t kDescriptors = 20'000;

AttackSite* the_site = nullptr;
HonestClient* the_honest = nullptr;

/// What holds after all attacks together.
class Afterwards final : public ::testing::Environment {
 public:
  void TearDown() override {
    honest().stop();
    const auto seen = honest().figures();
    fmt::print(
        "honest requests beside the attacks: {} asked, {} failed, p50 {} ms, p99 {} ms, longest {} "
        "ms; controller's peak memory {} MiB\n",
        seen.requests, seen.failures, seen.p50.count(), seen.p99.count(), seen.longest.count(),
        site().peakBytes() >> 20);
    EXPECT_TRUE(site().alive()) << "the controller has ended";
    EXPECT_EQ(seen.failures, 0u) << seen.last_failure;
    EXPECT_LE(seen.p99, kHonestP99);
    for (const auto& open : kKnownOpen)
      fmt::print("known open: {}: {}\n", open.attack, open.missing);
  }
};

}  // namespace

AttackSite& site() { return *the_site; }
HonestClient& honest() { return *the_honest; }

bool isKnownOpen(std::string_view attack) {
  return std::any_of(kKnownOpen.begin(), kKnownOpen.end(),
                     [attack](const auto& one) { return one.attack == attack; });
}

void expectRefused(std::string_view attack, bool refused, const std::string& what) {
  if (!isKnownOpen(attack)) {
    EXPECT_TRUE(refused) << attack << ": " << what;
    return;
  }
  fmt::print("{}: {} ({})\n", attack,
             refused ? "REFUSED NOW, take it out of tests/attack/known_open.h" : "known to be open",
             what);
}

int run(int count, char** arguments) {
  if (count == 3 && std::string_view(arguments[1]) == "--writer")
    return writeUntilKilled(arguments[2]);
  ::testing::InitGoogleTest(&count, arguments);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  ::signal(SIGPIPE, SIG_IGN);
  io::raiseDescriptorLimit(kDescriptors);
  AttackSite made;
  the_site = &made;
  HonestClient asking(made);
  the_honest = &asking;
  ::testing::AddGlobalTestEnvironment(new Afterwards);
  return RUN_ALL_TESTS();
}

}  // namespace muster::attack

int main(int count, char** arguments) { return muster::attack::run(count, arguments); }
