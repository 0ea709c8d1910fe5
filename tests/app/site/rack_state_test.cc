// SPDX-License-Identifier: Apache-2.0
// A state folder of the twin belongs to one rack.
#include "app/site/rack_state.h"

#include "app/site/state_lock.h"
#include "base/io/files.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

class RackState : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/muster-rack-state-XXXXXX";
    base_ = ::mkdtemp(name);
    state_ = base_ / "state";
  }
  void TearDown() override { fs::remove_all(base_); }
  Result<void> bind(const std::string& rack, const std::string& store = {}) {
    return app::bindToRack(state_, store, rack, [](std::string_view) {});
  }
  void put(const std::string& file, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((state_ / file).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(state_ / file, text));
  }
  fs::path base_, state_;
};

TEST_F(RackState, theSameRackKeepsItsState) {
  ASSERT_TRUE(bind("first"));
  put("muster.db", "pins");
  ASSERT_TRUE(bind("first"));
  EXPECT_EQ(io::readFile(state_ / "muster.db").value(), "pins");
  EXPECT_TRUE(app::checkBoundTo(state_, "first"));
}

TEST_F(RackState, aNewRackBeginsWithoutTheRecordsOfTheOneBefore) {
  put("keys/signing.pem", "key");  // `muster image build` before the first rack
  ASSERT_TRUE(bind("first"));
  put("muster.db", "pins");
  put("run/netboot/x", "y");
  EXPECT_EQ(app::checkBoundTo(state_, "second").error().code(), ErrorCode::Conflict);
  ASSERT_TRUE(bind("second"));
  EXPECT_FALSE(fs::exists(state_ / "muster.db"));
  EXPECT_FALSE(fs::exists(state_ / "run"));
  EXPECT_EQ(io::readFile(state_ / "keys/signing.pem").value(), "key")
      << "images are signed with it";
  EXPECT_EQ(io::readFile(base_ / "state.before" / "muster.db").value(), "pins")
      << "to be looked at";
  EXPECT_TRUE(app::checkBoundTo(state_, "second"));
  put("muster.db", "later pins");
  ASSERT_TRUE(bind("third"));
  EXPECT_EQ(io::readFile(base_ / "state.before" / "muster.db").value(), "later pins")
      << "one earlier state is kept, not all";
}

TEST_F(RackState, aMoveThatWasCutShortIsFinished) {
  ASSERT_TRUE(bind("first"));
  put("events.log",
      "of the first");  // the store has moved already, the marker is still the first rack's
  ASSERT_TRUE(bind("second"));
  EXPECT_FALSE(fs::exists(state_ / "events.log"));
  EXPECT_TRUE(app::checkBoundTo(state_, "second"));
}

TEST_F(RackState, recordsOfARealSiteAreNeverTaken) {
  put("muster.db", "a site");
  const auto bound = bind("first");
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code(), ErrorCode::Conflict);
  EXPECT_EQ(io::readFile(state_ / "muster.db").value(), "a site");
  EXPECT_TRUE(app::checkBoundTo(state_, "first"))
      << "a state that no rack has made is refused by lab up alone";
}

TEST_F(RackState, aStoreElsewhereIsNotMoved) {
  ASSERT_TRUE(bind("first", "postgresql://x"));
  EXPECT_EQ(bind("second", "postgresql://x").error().code(), ErrorCode::Conflict);
}

TEST_F(RackState, stateThatACommandWorksWithStaysWhereItIs) {
  ASSERT_TRUE(bind("first"));
  put("muster.db", "pins");
  const auto works = app::acquireLock(state_);
  ASSERT_TRUE(works);
  EXPECT_FALSE(bind("second"));
  EXPECT_TRUE(fs::exists(state_ / "muster.db"));
}

}  // namespace
}  // namespace muster::app
