// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/storage.h"
#include "provision/provision.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/mounts.h"
#include "inventory/model/profile.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using inventory::MountKind;
using ::testing::HasSubstr;
using ::testing::Not;

inventory::MountedSystem nfs() {
  return {.name = "home",
          .kind = MountKind::Nfs,
          .source = "10.20.0.9:/export/home",
          .mount = "/home",
          .options = {"vers=4.2", "nconnect=16"},
          .read_mb_s = 500};
}

TEST(StorageUnit, isRenderedWhole) {
  EXPECT_EQ(
      mountUnit(nfs()),
      "# Written by muster for storage home; changes are put back.\n[Unit]\nDescription=storage "
      "home (nfs)\nAfter=network-online.target\nWants=network-online.target\n\n"
      "[Mount]\nWhat=10.20.0.9:/export/home\nWhere=/"
      "home\nType=nfs\nOptions=vers=4.2,nconnect=16,_netdev\nTimeoutSec=120\n\n[Install]\nWantedBy="
      "remote-fs.target\n");
}

TEST(StorageUnit, eachKindHasItsOwnNeeds) {
  inventory::MountedSystem lustre{.name = "scratch",
                                  .kind = MountKind::Lustre,
                                  .source = "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch",
                                  .mount = "/mnt/scratch",
                                  .options = {"flock"}};
  EXPECT_THAT(mountUnit(lustre), HasSubstr("What=10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch\nWhere=/mnt/"
                                           "scratch\nType=lustre\nOptions=flock,_netdev\n"));
  inventory::MountedSystem gpfs{
      .name = "fs1", .kind = MountKind::Gpfs, .source = "fs1", .mount = "/gpfs/fs1"};
  EXPECT_THAT(mountUnit(gpfs), HasSubstr("Requires=gpfs.service\n"));
}

/// What systemd itself says of a unit; the services that it names are there.
std::string systemdSays(const std::string& name, const std::string& unit) {
  muster::test::TempFolder folder;
  for (const char* service : {"gpfs.service", "lnet.service"})
    EXPECT_TRUE(io::writeFileAtomic(folder / service, "[Service]\nExecStart=/bin/true\n"));
  EXPECT_TRUE(io::writeFileAtomic(folder / name, unit));
  const auto ran = io::runBlocking({"systemd-analyze",
                                    {"verify", "--man=no", (folder / name).string()},
                                    {{"SYSTEMD_UNIT_PATH", folder.path().string() + ":"}}});
  return !ran                                 ? ran.error().str()
         : ran->code == 0 && ran->err.empty() ? ""
                                              : fmt::format("{}{}", ran->out, ran->err);
}

TEST(StorageUnit, systemdItselfHasNothingToSayOfAnyKind) {
  if (!std::filesystem::exists("/usr/bin/systemd-analyze"))
    GTEST_SKIP() << "no systemd-analyze here";
  const inventory::MountedSystem lustre{.name = "scratch",
                                        .kind = MountKind::Lustre,
                                        .source = "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch",
                                        .mount = "/mnt/scratch-1",
                                        .options = {"flock"}};
  const inventory::MountedSystem gpfs{
      .name = "fs1", .kind = MountKind::Gpfs, .source = "fs1", .mount = "/gpfs/fs1"};
  for (const auto& system : {nfs(), lustre, gpfs})
    EXPECT_EQ(systemdSays(mountUnitName(system.mount), mountUnit(system)), "") << system.name;
  auto wrong = mountUnit(gpfs);
  wrong.replace(wrong.find("TimeoutSec="), 11, "TimeoutSeconds=");
  EXPECT_THAT(systemdSays(mountUnitName(gpfs.mount), wrong), HasSubstr("Unknown key"))
      << "it would be seen";
  EXPECT_THAT(systemdSays("elsewhere.mount", mountUnit(gpfs)), HasSubstr("match unit name"));
}

TEST(StorageUnit, namesFollowSystemdsRuleAndPercentIsNoSpecifier) {
  EXPECT_EQ(mountUnitName("/home"), "home.mount");
  EXPECT_EQ(mountUnitName("/mnt/a-b/c.d"), "mnt-a\\x2db-c.d.mount");
  EXPECT_EQ(mountUnitName("/.x"), "\\x2ex.mount");
  auto odd = nfs();
  odd.source = "10.20.0.9:/100%h";
  EXPECT_THAT(mountUnit(odd), HasSubstr("What=10.20.0.9:/100%%h\n"));
}

TEST(StorageUnit, everyChangeIsAnotherGoal) {
  auto changed = nfs();
  const auto before = storageValue(changed);
  changed.options.push_back("hard");
  EXPECT_NE(storageValue(changed), before);
  changed = nfs();
  changed.read_mb_s = 501;
  EXPECT_NE(storageValue(changed), before);
}

TEST(StoragePhase, wantsWhatTheProfileNamesAfterItsDrivers) {
  auto cluster = twoNodes();
  test::VirtualLoop loop;
  test::FakeAgentGateway agents;
  cluster.file_systems["home"] = nfs();
  auto& profile = cluster.profiles.at(cluster.nodes[0].profile);
  profile.mounts = {"home"};
  const auto phase = makeStoragePhase(cluster, agents, loop.clock);
  const auto goals = phase->goals(cluster, lifecycle::Subject(cluster.nodes[0].name), {});
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].facet.facet.str(), "storage.home");
  EXPECT_EQ(goals[0].want, storageValue(nfs()));
  EXPECT_EQ(goals[0].needs.size(), 1 + profile.drivers.size());
  EXPECT_TRUE(phase->goals(cluster, lifecycle::Subject::cluster(), {}).empty());
}

TEST(StoragePhase, takesAwayWhatTheProfileNamesNoMore) {
  auto cluster = twoNodes();
  test::VirtualLoop loop;
  test::FakeAgentGateway agents;
  test::FakeActContext context;
  const auto& name = cluster.nodes[0].name;
  const lifecycle::Subject subject(name);
  agents.boot(name, wire::Mode::Disk);
  agents.answer(wire::TaskKind::Storage, R"({"removed":"home"})");
  const auto phase = makeStoragePhase(cluster, agents, loop.clock);
  lifecycle::FactSet facts;
  facts.put({subject, FacetName("storage.home"), "mounted:abc", {}, "", ""});
  facts.put({subject, FacetName("storage.never"), "absent", {}, "", ""});
  const auto goals = phase->goals(cluster, subject, facts);
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].facet.facet.str(), "storage.home");
  EXPECT_EQ(goals[0].want, "none");
  EXPECT_EQ(goals[0].disruption, lifecycle::Disruption::Drain);

  lifecycle::Action action;
  action.facet = goals[0].facet;
  action.to = goals[0].want;
  Result<lifecycle::Outcome> outcome = muster::test::runAsync(phase->act(action, context));
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<lifecycle::Done>(*outcome));
  ASSERT_EQ(agents.submitted(name, wire::TaskKind::Storage).size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(agents.submitted(name, wire::TaskKind::Storage)[0].params),
            nlohmann::json({{"name", "home"}, {"remove", true}}));
  const auto verified = muster::test::runAsync(phase->verify(action));
  ASSERT_TRUE(verified) << verified.error().str();
  ASSERT_EQ(verified->size(), 1u);
  facts.put(verified->front());
  EXPECT_TRUE(phase->goals(cluster, subject, facts).empty());
}

}  // namespace
}  // namespace muster::provision
