// SPDX-License-Identifier: Apache-2.0
#include "wire/task_params.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The bytes are those that controllers wrote before the tables: agents of then read them, and a
/// mount's digest is made of them.
TEST(TaskParams, haveTheBytesThatAgentsOfBeforeRead) {
  EXPECT_EQ(toJson(ProbeParams{{"package.nginx", "kernel"}}),
            R"({"probes":["package.nginx","kernel"]})");
  EXPECT_EQ(toJson(InspectParams{seconds(31)}), R"({"lldp_seconds":31})");
  EXPECT_EQ(toJson(InspectParams{}), "{}");
  EXPECT_EQ(toJson(ResetGpuParams{{"GPU-1"}}), R"({"gpus":["GPU-1"]})");
  EXPECT_EQ(toJson(ListFirmwareParams{{"nvme"}}), R"({"ways":["nvme"]})");
  EXPECT_EQ(toJson(JoinPoolParams{"slurm", "C", "abc"}),
            R"({"conf":"C","kind":"slurm","munge_key":"YWJj"})");
  EXPECT_EQ(toJson(RunChecksParams{{{"host.memory", {{"seconds", 5}}, seconds(60)}}}),
            R"({"checks":[{"deadline_seconds":60,"id":"host.memory","params":{"seconds":5}}]})");
  EXPECT_EQ(toJson(NodeServiceParams{"opensm", "v", {{"opensm.conf", "x"}}, {}}),
            R"({"files":{"opensm.conf":"x"},"service":"opensm","settings":{},"value":"v"})");
  EXPECT_EQ(toJson(MountRemoval{"scratch"}), R"({"name":"scratch","remove":true})");
  MountParams mount;
  mount.name = "scratch";
  mount.unit = "[Mount]\n";
  mount.unit_name = "scratch.mount";
  mount.packages = {"nfs-common"};
  mount.source = "10.0.0.1:/x";
  mount.at = "/scratch";
  mount.types = "nfs*";
  EXPECT_EQ(toJson(mount),
            R"({"at":"/scratch","name":"scratch","options":[],"packages":["nfs-common"],)"
            R"("read_mb_s":0,"source":"10.0.0.1:/x","types":"nfs*","unit":"[Mount]\n",)"
            R"("unit_name":"scratch.mount","write_mb_s":0})");
}

TEST(TaskParams, ofADriverLeaveOutWhatItDoesNotHave) {
  DriverParams driver;
  driver.name = "doca";
  driver.packages = {"rdma-core=44"};
  EXPECT_EQ(toJson(driver),
            R"({"modules":[],"name":"doca","packages":["rdma-core=44"],"verify":{}})");
  driver.files = {{"etc/sysctl.d/90-muster-doca.conf", "a = 1\n"}};
  driver.build = "dkms";
  driver.archives = {{"cuda", "A", "D", "a2V5"}};
  const auto again = parseDriverParams(toJson(driver));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->build, "dkms");
  EXPECT_EQ(again->files, driver.files);
  ASSERT_EQ(again->archives.size(), 1u);
  EXPECT_EQ(again->archives[0].apt_source, "A");
  EXPECT_EQ(again->archives[0].key_base64, "a2V5");
  EXPECT_TRUE(parseDriverParams(R"({"packages":[]})")) << "the name may be absent";
}

TEST(TaskParams, ofAPairHaveWhatTheirSideAndEngineNeed) {
  RdmaPairParams client;
  client.role = PairRole::Client;
  client.peer = "10.0.0.2";
  client.device = "mlx5_0";
  client.min_gbits = 380;
  client.gpu = 3;
  client.latency_iterations = 5000, client.max_us = 4.5;
  const auto again = parseRdmaPairParams(toJson(client));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->peer, "10.0.0.2");
  EXPECT_EQ(again->gpu, 3);
  EXPECT_EQ(again->latency_iterations, 5000);
  EXPECT_EQ(again->max_us, 4.5);
  EXPECT_EQ(again->min_gbits, 380);
  EXPECT_FALSE(parseRdmaPairParams(R"({"role":"client","device":"mlx5_0","min_gbits":0})"))
      << "a client needs a peer";
  EXPECT_FALSE(parseRdmaPairParams(R"({"role":"server","min_gbits":0})")) << "and an HCA";
  EXPECT_TRUE(parseRdmaPairParams(R"({"role":"server","engine":"tcp","port":1,"min_gbits":0})"));
  EXPECT_FALSE(parseRdmaPairParams(R"({"role":"other","device":"x","min_gbits":0})"));
}

TEST(TaskParams, areTakenStrictly) {
  EXPECT_THAT(parseProbeParams("{}").error().str(), HasSubstr("params.probes is missing"));
  EXPECT_THAT(parseProbeParams(R"({"probes":[7]})").error().str(), HasSubstr("params.probes"));
  EXPECT_EQ(parseProbeParams("[").error().code(), ErrorCode::Corrupt);
  EXPECT_FALSE(parseInspectParams(R"({"lldp_seconds":61})")) << "nobody waits longer for LLDP";
  EXPECT_FALSE(parseInspectParams(R"({"lldp_seconds":-1})"));
  EXPECT_THAT(parseResetGpuParams(R"({"gpus":[]})").error().str(), HasSubstr("names none"));
  EXPECT_FALSE(parseJoinPoolParams(R"({"kind":"slurm","conf":"","munge_key":"***"})"));
  EXPECT_FALSE(parseRunChecksParams(R"({"checks":[{"params":{}}]})"));
  EXPECT_FALSE(parseRunChecksParams(R"({"checks":[{"id":"a","params":[]}]})"));
  EXPECT_THAT(parseNodeServiceParams(R"({"service":"opensm","value":""})").error().str(),
              HasSubstr("is empty"));
  EXPECT_FALSE(parseMountParams(R"({"name":"x","unit":"","unit_name":"x.mount","packages":[],)"
                                R"("source":"a","at":"/x","types":"nfs","options":[]})"))
      << "a mount without its digest";
  EXPECT_FALSE(parseMountRemoval(R"({"name":"x","remove":"yes"})"));
}

TEST(TaskParams, ofAServiceMayHaveLongFiles) {
  NodeServiceParams params{
      "opensm", "v", {{"guid2lid", std::string(kMaxServiceFileBytes, 'x')}}, {}};
  const auto again = parseNodeServiceParams(toJson(params));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_THAT(again->settings, IsEmpty());
  EXPECT_EQ(again->files.at("guid2lid").size(), kMaxServiceFileBytes);
  params.files["guid2lid"] += 'x';
  EXPECT_THAT(parseNodeServiceParams(toJson(params)).error().str(), HasSubstr("guid2lid"));
}

}  // namespace
}  // namespace muster::wire
