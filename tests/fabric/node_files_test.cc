// SPDX-License-Identifier: Apache-2.0
// The units and the script that nodes get, as systemd and the shell read them.
#include "fabric/node_services.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

class Units : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/bin/systemd-analyze"))
      GTEST_SKIP() << "no systemd-analyze here";
  }
  /// The unit with the node's folder moved here, so that the programs that it names are there.
  std::string systemdSays(const std::string& name, std::string unit) {
    for (auto at = unit.find("/etc/muster"); at != std::string::npos;
         at = unit.find("/etc/muster", at + folder_.path().string().size()))
      unit.replace(at, 11, folder_.path().string());
    EXPECT_TRUE(io::writeFileAtomic(folder_ / name, unit));
    const auto ran = io::runBlocking({"systemd-analyze",
                                      {"verify", "--man=no", (folder_ / name).string()},
                                      {{"SYSTEMD_UNIT_PATH", folder_.path().string() + ":"}}});
    return !ran                                 ? ran.error().str()
           : ran->code == 0 && ran->err.empty() ? ""
                                                : fmt::format("{}{}", ran->out, ran->err);
  }
  muster::test::TempFolder folder_;
};

TEST_F(Units, ofTheStandbyIsUnderstoodBySystemd) {
  if (!std::filesystem::exists("/usr/sbin/opensm")) GTEST_SKIP() << "no opensm here";
  auto cluster = railCluster(3);
  auto& fabric = cluster.fabrics.at("ib");
  fabric.subnet_managers = {"controller", "gpu002"};
  KnownGuids known;
  known.hcas["gpu002 mlx5_0"] = "0x0000000000000021";
  const auto files = opensmFiles(cluster, fabric, declared(cluster), known, "gpu002", "");
  ASSERT_TRUE(files) << files.error().str();
  auto unit = files->files.at("muster-opensm.service");
  EXPECT_EQ(systemdSays("muster-opensm.service", unit), "");
  unit.replace(unit.find("RestartSec="), 11, "RestartSecs=");
  EXPECT_THAT(systemdSays("muster-opensm.service", unit), HasSubstr("Unknown key"))
      << "it would be seen";
}

TEST_F(Units, ofTheMarkingAndItsScriptAreUnderstood) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics.at("ib");
  fabric.roce = inventory::Roce{};
  const auto files = roceFiles(cluster.profiles.at("gpu-node"), {&fabric}).files;
  const auto script = folder_ / "roce.sh";
  ASSERT_TRUE(io::writeFileAtomic(script, files.at("roce.sh"), 0755));
  EXPECT_EQ(systemdSays("muster-roce.service", files.at("muster-roce.service")), "");
  const auto read = io::runBlocking(
      {files.at("roce.sh").starts_with("#!/bin/bash") ? "bash" : "sh", {"-n", script.string()}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, 0) << read->err;
}

}  // namespace
}  // namespace muster::fabric::test
