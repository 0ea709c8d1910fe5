// SPDX-License-Identifier: Apache-2.0
// The log of an isolation, found by another host: it has the store, and not the folder.
#include "app/validation/isolation_log_copy.h"

#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::app {
namespace {

namespace isolate = validate::isolate;
using ::testing::SizeIs;

class IsolationLog : public ::testing::Test {
 protected:
  static isolate::Begun begun(const std::string& run) {
    isolate::Begun out;
    out.run_id = run, out.seed = 7;
    out.engine = {isolate::EngineKind::Tcp, 1};
    out.site.layout.leaf = out.site.layout.pod = {0, 0};
    out.site.leaf_names = {"r1"};
    for (const char* name : {"n1", "n2"})
      out.site.nodes.push_back({NodeName(name), "10.20.1.1", {"eth0"}});
    return out;
  }
  static isolate::LoggedRound round(double gbits) {
    return {isolate::RoundResult{{{gbits}, {}}}, nlohmann::json{{"gbits", gbits}}};
  }

  test::TempFolder a_, b_;
  test::MemoryStore store_;
  IsolationLogCopy copy_{store_, "isolating-r-1"};
};

TEST_F(IsolationLog, isFetchedWithEveryRoundThatHasEnded) {
  isolate::RunLog here(a_ / "log", &copy_);
  ASSERT_TRUE(here.begin(begun("isolate-r-1-x")));
  for (const double gbits : {390.0, 250.5})
    ASSERT_TRUE(here.add(gbits > 300 ? 1 : 2, round(gbits)));
  isolate::RunLog there(b_ / "log", &copy_);
  EXPECT_FALSE(there.begun()->has_value());
  ASSERT_TRUE(there.fetch());
  ASSERT_TRUE(there.begun()->has_value());
  EXPECT_EQ(there.begun()->value().run_id, "isolate-r-1-x") << "tasks have the same names there";
  const auto rounds = there.rounds();
  ASSERT_TRUE(rounds);
  ASSERT_THAT(*rounds, SizeIs(2));
  EXPECT_EQ(rounds->at(1).evidence["gbits"], 250.5);
  // A folder in which something is under way is newer than what any other host has left.
  ASSERT_TRUE(there.add(3, round(100)));
  ASSERT_TRUE(there.fetch());
  EXPECT_THAT(*there.rounds(), SizeIs(3));
}

TEST_F(IsolationLog, ofAnotherRunIsNoneAndOneThatIsOverIsNone) {
  isolate::RunLog here(a_ / "log", &copy_);
  ASSERT_TRUE(here.begin(begun("one")));
  for (int number = 1; number <= 3; ++number) ASSERT_TRUE(here.add(number, round(390)));
  IsolationLogCopy of_another(store_, "isolating-r-2");
  isolate::RunLog another(b_ / "another", &of_another);
  ASSERT_TRUE(another.fetch());
  EXPECT_FALSE(another.begun()->has_value());
  // The other run has a round less: the third of the run before is none of its own.
  ASSERT_TRUE(another.begin(begun("two")));
  ASSERT_TRUE(another.add(1, round(1)));
  isolate::RunLog later(a_ / "later", &of_another);
  ASSERT_TRUE(later.fetch());
  EXPECT_THAT(*later.rounds(), SizeIs(1));
  ASSERT_TRUE(later.remove());
  isolate::RunLog last(b_ / "last", &of_another);
  ASSERT_TRUE(last.fetch());
  EXPECT_FALSE(last.begun()->has_value());
  EXPECT_THAT(*last.rounds(), SizeIs(0));
}

}  // namespace
}  // namespace muster::app
