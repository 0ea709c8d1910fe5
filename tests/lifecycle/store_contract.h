// SPDX-License-Identifier: Apache-2.0
// The contract of Store: tests/lifecycle/store/store_contract_test.cc, run against every
// implementation that a program of tests instantiates it with. A maker opens stores on the same
// data: each is one process.
#pragma once

#include "lifecycle/audit/audit.h"
#include "tests/lifecycle/rack.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace muster::lifecycle {

/// One empty database, and as many stores on it as a test wants.
class StoreMaker {
 public:
  virtual ~StoreMaker() = default;
  virtual std::unique_ptr<Store> open() = 0;
  /// Of the database, for openMeasurements; empty: it has none.
  virtual std::string url() const { return {}; }
};
struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreMaker>()>
      make;  ///< null: not here, with `skipped` as the reason
  std::string skipped;
};
inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }

inline const WallTime kNow = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4);

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    if (!GetParam().make) GTEST_SKIP() << GetParam().skipped;
    maker_ = GetParam().make();
    store_ = maker_->open();
    ASSERT_TRUE(store_);
  }
  static Intent intent(const std::string& id, const std::string& facet) {
    Intent out;
    out.id = id;
    out.plan_hash = "hash";
    out.inventory_digest = "inventory";
    out.action.id = facet;
    out.action.facet = test::FakeWorld::ref(facet);
    out.action.to = "to 'quoted' ü \n";
    out.action.deadline = std::chrono::seconds(60);
    out.action.needs = {"a", "b"};
    out.opened_at = kNow;
    return out;
  }
  std::vector<std::string> open() {
    std::vector<std::string> out;
    auto intents = store_->openIntents();
    EXPECT_TRUE(intents);
    for (const auto& i : *intents) out.push_back(i.id);
    return out;
  }
  std::vector<std::string> open(const Subject& subject) {
    std::vector<std::string> out;
    auto intents = store_->openIntentsOf(subject);
    EXPECT_TRUE(intents);
    for (const auto& i : *intents) out.push_back(i.id);
    return out;
  }
  std::unique_ptr<StoreMaker> maker_;
  std::unique_ptr<Store> store_;
};

}  // namespace muster::lifecycle
