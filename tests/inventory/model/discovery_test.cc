// SPDX-License-Identifier: Apache-2.0
// Discovery, parts, drivers' settings and storage: what an inventory may say of them.
#include "inventory/model/discovery.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/hardware.h"
#include "inventory/model/profile.h"
#include "inventory/schema/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with(const std::string& more, const std::string& profile = "") {
  ::setenv("PW", "calvin", 1);
  return "cluster: {name: small}\nnetworks: {provisioning: {cidr: 10.20.0.0/16}}\nimages: {b: "
         "{build: {suite: bookworm, packages: [linux-image-amd64]}}}\n"
         "credentials: {bmc: {username: admin, password: {env: PW}}}\nprofiles: {gpu: {image: b" +
         profile + "}}\n" + more;
}
std::string problems(const std::string& text) {
  const auto loaded = loadText(text, "/inv/cluster.yaml");
  std::string out;
  for (const auto& one : loaded.diagnostics.all())
    if (one.severity == Severity::Error) out += one.str() + "\n";
  return out;
}

TEST(DiscoveryTables, rulesRangesAndCredentialsAreRead) {
  const auto text = with(
      "discovery: {ranges: [10.20.250.0/24], credentials: [bmc], rules: {hgx: {match: {model: "
      "'*H100*', gpus: '8'}, profile: gpu, names: 'gpu[001-004]', approve: true}}}\n");
  const auto loaded = loadText(text, "/inv/cluster.yaml");
  ASSERT_TRUE(loaded.cluster) << problems(text);
  const auto& rule = loaded.cluster->discovery->rules.at(0);
  EXPECT_EQ(rule.name, "hgx");
  EXPECT_EQ(rule.match.at("gpus"), "8");
  EXPECT_TRUE(rule.approve);
}

TEST(DiscoveryTables, badRulesAreSaid) {
  EXPECT_THAT(problems(with("discovery: {rules: {a: {match: {}, profile: gpu}}}\n")),
              HasSubstr("matches every machine"));
  EXPECT_THAT(problems(with("discovery: {rules: {a: {match: {colour: blue}, profile: gpu}}}\n")),
              HasSubstr("colour"));
  EXPECT_THAT(problems(with("discovery: {rules: {a: {match: {model: x}, profile: gpuu}}}\n")),
              HasSubstr("gpuu"));
  EXPECT_THAT(problems(with("discovery: {credentials: [nobody]}\n")), HasSubstr("nobody"));
  EXPECT_THAT(problems(with("discovery: {ranges: [here]}\n")), HasSubstr("here"));
}

TEST(ExpectTables, partsAreRowsAndNonsenseIsRefused) {
  const auto text = with("",
                         ", expect: {parts: [{kind: dimm, count: 32, size_gib: 64}, {kind: nvme, "
                         "model: '*PM17*', firmware: 'GDC7*'}]}");
  const auto loaded = loadText(text, "/inv/cluster.yaml");
  ASSERT_TRUE(loaded.cluster) << problems(text);
  EXPECT_EQ(loaded.cluster->profiles.at("gpu").expect.parts.at(0).size_gib, 64);
  EXPECT_THAT(problems(with("", ", expect: {parts: [{kind: nic, size_gib: 64}]}")),
              HasSubstr("have a size"));
  EXPECT_THAT(problems(with("", ", expect: {parts: [{kind: dimm, firmware: x}]}")),
              HasSubstr("no firmware"));
}

TEST(DriverTables, presetsFillInAndWhatIsWrittenWins) {
  const auto text = with(
      "drivers: {tune: {preset: numa-balancing-off, sysctl: {vm.nr_hugepages: '1024'}}, fm: "
      "{preset: fabric-manager, packages: [nvidia-fabricmanager-570=570.1-1]}}\n");
  const auto loaded = loadText(text, "/inv/cluster.yaml");
  ASSERT_TRUE(loaded.cluster) << problems(text);
  EXPECT_EQ(loaded.cluster->drivers.at("tune").sysctl,
            (std::map<std::string, std::string>{{"kernel.numa_balancing", "0"},
                                                {"vm.nr_hugepages", "1024"}}));
  EXPECT_EQ(loaded.cluster->drivers.at("fm").verify.at("fabricmanager.match"), "yes");
  EXPECT_EQ(loaded.cluster->drivers.at("fm").verify.at("service.nvidia-fabricmanager"), "active");
  Driver own;
  own.sysctl["kernel.numa_balancing"] = "1";
  applyPreset(own, *findPreset("numa-balancing-off"));
  EXPECT_EQ(own.sysctl.at("kernel.numa_balancing"), "1");
}

TEST(DriverTables, fabricManagerIsTiedToTheDriversVersion) {
  EXPECT_THAT(problems(with("drivers: {n: {packages: [nvidia-driver=570.124.06-1, "
                            "nvidia-fabricmanager-570=570.86.15-1]}}\n")),
              HasSubstr("Fabric Manager is pinned to 570.86.15, nvidia-driver to 570.124.06"));
  EXPECT_THAT(problems(with("drivers: {n: {packages: [nvidia-fabricmanager-570]}}\n")),
              HasSubstr("has no pin"));
  EXPECT_EQ(problems(with("drivers: {n: {packages: ['nvidia-driver=570.124.06-1~deb12', "
                          "nvidia-fabricmanager-570=570.124.06-1]}}\n")),
            "");
  EXPECT_EQ(upstreamVersion("2:570.124.06-1~deb12"), "570.124.06");
}

// HGX B200: Fabric Manager's own check before its start wants ib_umad, and it starts nvlsm. NVL72:
// without channel 0 CUDA's calls across nodes are refused (IMEX guide, IMEX channels).
TEST(DriverTables, presetsOfNvlink5BringWhatItsServicesNeed) {
  const auto text = with(
      "drivers: {fm: {preset: fabric-manager-nvlink5, packages: "
      "[nvidia-fabricmanager-580=580.95.05-1], fabric_manager: {FABRIC_MODE: \"0\"}}, "
      "imex: {preset: imex, packages: [nvidia-imex-580=580.95.05-1]}}\n");
  const auto loaded = loadText(text, "/inv/cluster.yaml");
  ASSERT_TRUE(loaded.cluster) << problems(text);
  EXPECT_EQ(problems(text), "");
  const auto& manager = loaded.cluster->drivers.at("fm");
  EXPECT_THAT(manager.packages, ElementsAre("nvidia-fabricmanager-580=580.95.05-1", "nvlsm"));
  EXPECT_THAT(manager.modules, ElementsAre("ib_umad"));
  EXPECT_EQ(manager.verify.at("module.ib_umad"), "loaded");
  EXPECT_EQ(manager.verify.at("service.nvidia-fabricmanager"), "active");
  EXPECT_EQ(manager.verify.at("fabricmanager.match"), "yes");
  const auto& imex = loaded.cluster->drivers.at("imex");
  EXPECT_EQ(imex.module_options.at("nvidia").at("NVreg_CreateImexChannel0"), "1");
  EXPECT_EQ(imex.verify.at("service.nvidia-imex"), "active");
}

TEST(DriverTables, keysOfFabricManagerBelongToItsPreset) {
  const auto good = with(
      "drivers: {fm: {preset: fabric-manager, packages: [nvidia-fabricmanager-570=570.1-1], "
      "fabric_manager: {FABRIC_MODE: \"0\", LOG_FILE_NAME: /var/log/fm.log}}}\n");
  const auto loaded = loadText(good, "/inv/cluster.yaml");
  ASSERT_TRUE(loaded.cluster) << problems(good);
  EXPECT_EQ(problems(good), "");
  EXPECT_EQ(loaded.cluster->drivers.at("fm").fabric_manager.at("FABRIC_MODE"), "0");
  EXPECT_NE(toJson(*loaded.cluster).find("\"LOG_FILE_NAME\""), std::string::npos)
      << "the digest covers it";
  EXPECT_THAT(
      problems(with("drivers: {n: {packages: [x=1], fabric_manager: {FABRIC_MODE: \"0\"}}}\n")),
      AllOf(HasSubstr("the driver n is not Fabric Manager's"),
            HasSubstr("preset: fabric-manager")));
  EXPECT_THAT(
      problems(with("drivers: {fm: {preset: fabric-manager, fabric_manager: {FABRIC_MODE: 0}}}\n")),
      HasSubstr("put it in quotes"));
  EXPECT_THAT(
      problems(
          with("drivers: {fm: {preset: fabric-manager, fabric_manager: {fabric_mode: \"0\"}}}\n")),
      HasSubstr("is not a key of fabricmanager.cfg"));
  const auto misspelt = loadText(
      with("drivers: {fm: {preset: fabric-manager, fabric_manager: {FABRIC_MOD: \"0\"}}}\n"),
      "/inv/cluster.yaml");
  EXPECT_TRUE(misspelt.cluster) << "a later release may know it";
  EXPECT_THAT(checkText(misspelt), HasSubstr("did you mean \"FABRIC_MODE\"?"));
  const auto two = with(
      "drivers: {a: {preset: fabric-manager, fabric_manager: {FABRIC_MODE: \"0\"}}, b: {preset: "
      "fabric-manager, fabric_manager: {LOG_LEVEL: \"4\"}}}\n",
      ", drivers: [a, b]");
  EXPECT_THAT(problems(two), HasSubstr("the drivers a and b both set keys of Fabric Manager"));
}

TEST(DriverTables, archivesNeedAKeyAndValuesCannotBreakOut) {
  EXPECT_THAT(problems(with("drivers: {n: {archives: {cuda: {url: 'https://x/'}}}}\n")),
              HasSubstr("key"));
  EXPECT_NE(problems(with(
                "drivers: {n: {module_options: {nvidia: {NVreg_A: '1 install evil /bin/sh'}}}}\n")),
            "");
  EXPECT_NE(problems(with(
                "drivers: {n: {sysctl: {vm.nr_hugepages: \"1\\nkernel.core_pattern = x\"}}}\n")),
            "");
  EXPECT_NE(problems(with("drivers: {n: {kernel_args: ['a b']}}\n")), "");
  EXPECT_NE(problems(with("drivers: {n: {preset: nonsense}}\n")), "");
}

TEST(LoadOptions, rowsThatAreMissingMayBeAllowedAndTextsStandForFiles) {
  LoadOptions options;
  options.rows_may_miss = true;
  const auto file = std::filesystem::temp_directory_path() /
                    ("muster-load-" + std::to_string(::getpid()) + ".yaml");
  const auto csv = file.parent_path() / "muster-load-racks.csv";
  {
    std::ofstream(file) << with(
        "nodes: [{names: 'gpu[001-002]', profile: gpu, from: muster-load-racks.csv}]\n");
  }
  options.texts[csv] =
      "name,mac,address,bmc\ngpu001,52:54:00:00:00:01,10.20.1.1,https://10.20.250.1\n";
  const auto loaded = load(file, options);
  std::filesystem::remove(file);
  ASSERT_TRUE(loaded.cluster);
  EXPECT_EQ(loaded.cluster->nodes.size(), 1u);
  EXPECT_EQ(loaded.cluster->node_files.at(0).names.size(), 2u);
  EXPECT_EQ(loaded.cluster->node_files.at(0).path, csv);
}

}  // namespace
}  // namespace muster::inventory
