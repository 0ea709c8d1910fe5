// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/backup/backup.h"
#include "app/site/site_keys.h"
#include "lifecycle/store/leader_lease.h"
#include "lifecycle/store/store_copy.h"
#include "tests/app/site_folder.h"

#include <gtest/gtest.h>

namespace muster::app {

inline const Secret kPassphrase("correct horse battery");

inline lifecycle::Subject node(const char* name) { return lifecycle::Subject(NodeName(name)); }

/// A site with keys, a store in which things are under way, and secrets.
class BackupSite : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::makeDirs(site_ / "state", 0700));
    ASSERT_TRUE(Keys::loadOrCreate(site_ / "state"));
    auto store = site_.store();
    ASSERT_TRUE(store->addEvent(
        {0, SystemClock().now(), lifecycle::EventKind::Note, node("gpu001"), "", "before"}));
    ASSERT_TRUE(store->grantWipe(NodeName("gpu001"), "new disk", SystemClock().now()));
    ASSERT_TRUE(store->signOn("old host", std::chrono::seconds(60)));
    const auto claim = store->claim(node("gpu002"));
    ASSERT_TRUE(claim);
    token_ = claim->token;
    lifecycle::LeaderLease lease(*store, clock_, "old host", "10.20.0.1");
    const auto leader = lease.take();
    ASSERT_TRUE(leader);
    term_ = leader->term;
    lifecycle::Intent intent;
    intent.id = "i1";
    intent.action.id = "gpu002/image";
    intent.action.facet = {node("gpu002"), FacetName("image")};
    intent.opened_at = SystemClock().now();
    ASSERT_TRUE(store->openIntent(intent));
  }
  std::filesystem::path file() const { return site_ / "site.backup"; }
  Result<BackupReport> make() const { return makeBackup(site_.options(), file(), kPassphrase); }
  /// Another host's folders.
  Options elsewhere() const {
    auto out = site_.options();
    out.state = site_ / "other" / "state";
    return out;
  }
  /// What a reader of the state folder's parent sees, hidden files too.
  std::vector<std::string> namesIn(const std::filesystem::path& folder) const {
    std::vector<std::string> out;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      out.push_back(entry.path().filename().string());
    return out;
  }
  SiteFolder site_;
  SystemClock clock_;
  std::int64_t token_ = 0, term_ = 0;
};

}  // namespace muster::app
