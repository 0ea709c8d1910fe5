// SPDX-License-Identifier: Apache-2.0
#include "validate/validation_scope.h"
#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"

#include <gtest/gtest.h>

namespace muster::validate {
namespace {

using nlohmann::json;

/// Certificates that were signed yesterday must find the same digest tomorrow: it is that of this
/// very JSON, whoever writes it.
TEST(DeclarationDigest, isOfOneJson) {
  inventory::Cluster cluster;
  cluster.drivers["nvidia"].packages = {"nvidia-driver=535.*", "with \"quotes\""};
  cluster.drivers["nvidia"].modules = {"nvidia", "nvidia_uvm"};
  cluster.drivers["nvidia"].verify = {{"nvml.driver", "535.*"}, {"module.nvidia", "*"}};
  cluster.drivers["doca"] = {};
  cluster.firmware["2026.1"].components = {{.name = "BMC", .version = "2.1.0"},
                                           {.name = "BIOS", .version = "1.5.0"}};
  cluster.gates["burn"] = {"burn", inventory::GateLevel::Long, {"gpu", "host"}, true};
  cluster.gates["pair"] = {
      "pair", inventory::GateLevel::Quick, {}, false, {{"rdma.pair", {{"min_gbits", "380"}}}}};
  auto& profile = cluster.profiles["gpu"];
  profile.name = "gpu";
  profile.image = "bookworm";
  profile.fabric = "compute";
  profile.firmware = "2026.1";
  profile.drivers = {"nvidia", "doca"};
  profile.gates = {"pair", "burn"};
  profile.expect.gpus = 8;
  profile.expect.cpus_min = 192;
  profile.expect.gpu_model = "H100 ü";
  inventory::Node node;
  node.name = NodeName("gpu-01");
  node.profile = "gpu";

  const json same{
      {"node", "gpu-01"},
      {"profile", "gpu"},
      {"image", "bookworm"},
      {"fabric", "compute"},
      {"expect", {{"gpus", 8}, {"cpus_min", 192}, {"gpu_model", "H100 ü"}}},
      {"drivers",
       {{"nvidia",
         {{"packages", {"nvidia-driver=535.*", "with \"quotes\""}},
          {"modules", {"nvidia", "nvidia_uvm"}},
          {"verify", {{"nvml.driver", "535.*"}, {"module.nvidia", "*"}}}}},
        {"doca",
         {{"packages", json::array()}, {"modules", json::array()}, {"verify", json::object()}}}}},
      {"firmware", {{"BMC", "2.1.0"}, {"BIOS", "1.5.0"}}},
      {"gates",
       {{"burn", {{"level", 2}, {"on", {"gpu", "host"}}, {"isolate", true}}},
        {"pair",
         {{"level", 0},
          {"on", json::array()},
          {"isolate", false},
          {"checks", {{"rdma.pair", {{"min_gbits", "380"}}}}}}}}}};
  EXPECT_EQ(declarationDigest(cluster, node), io::sha256Hex(same.dump()));
  const auto digest = declarationDigest(cluster, node);
  EXPECT_EQ(validationScopeHash(cluster, node, {}),
            io::sha256Hex(json{{"declaration", digest}}.dump()));
  lifecycle::FactSet facts;
  for (const auto& [facet, value] :
       {std::pair("image", "sha256:1"), {"hw.serial", "S\t1"}, {"pool", "out"}})
    facts.put({lifecycle::Subject(node.name), FacetName(facet), value, {}, "", ""});
  EXPECT_EQ(validationScopeHash(cluster, node, facts),
            io::sha256Hex(json{{"declaration", digest},
                               {"facts", {{"image", "sha256:1"}, {"hw.serial", "S\t1"}}}}
                              .dump()));
}

TEST(DeclarationDigest, ofNothingDeclared) {
  inventory::Cluster cluster;
  cluster.profiles["p"].name = "p";
  inventory::Node node;
  node.name = NodeName("n1");
  node.profile = "p";
  const json same{{"node", "n1"},
                  {"profile", "p"},
                  {"image", ""},
                  {"fabric", ""},
                  {"expect", {{"gpu_model", ""}}},
                  {"drivers", json::object()},
                  {"firmware", json::object()},
                  {"gates", json::object()}};
  EXPECT_EQ(declarationDigest(cluster, node), io::sha256Hex(same.dump()));
}

}  // namespace
}  // namespace muster::validate
