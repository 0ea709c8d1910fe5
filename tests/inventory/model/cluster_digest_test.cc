// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/cluster.h"
#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {
namespace {

class Digest : public InventoryTest {
 protected:
  std::string digest(std::string_view yaml) {
    auto loaded = loadYaml(yaml);
    EXPECT_TRUE(loaded.cluster) << checkText(loaded);
    return loaded.cluster ? loaded.cluster->digest : "";
  }
};

TEST_F(Digest, ignoresCommentsOrderAndSpelling) {
  std::string plain = digest(kSmall);
  EXPECT_EQ(plain.size(), 64u);
  EXPECT_EQ(digest("# a comment\n" + std::string(kSmall) + "\n\n"), plain);
  EXPECT_EQ(digest(with("pkey: 0x10", "pkey: 16")), plain);
  EXPECT_EQ(
      digest(with("pkey: 0x10, full: [\"gpu[001-002]\"]", "full: ['gpu[001-002]'], pkey: 0x0010")),
      plain);
  EXPECT_EQ(digest(with(
                "{components: {BMC: {version: 2.1.0}, BIOS: {version: 1.4.2}}, order: [BMC]}",
                "{order: [BMC], components: {BIOS: {version: \"1.4.2\"}, BMC: {version: 2.1.0}}}")),
            plain);
  EXPECT_EQ(digest(with("rails: 2", "rails: 2\n    sus: 1")), plain)
      << "a default that is written out changes nothing";
  std::string moved = with("pools:\n  batch: {slurm: {partition: gpu}}\n", "");
  EXPECT_EQ(digest("pools:\n  batch:\n    slurm:\n      partition: gpu\n" + moved), plain);
}

TEST_F(Digest, ignoresHowNodesAreListed) {
  std::string plain = digest(kSmall);
  write("racks.csv",
        "serial,name,rack,unit,mac,address,bmc\r\n"
        ",gpu002,r1,12,52-54-00-20-00-02,10.20.1.2,\"https://10.20.250.2:443\"\r\n"
        "SN1,gpu001,r1,10,525400200001,10.20.1.1,https://10.20.250.1/\r\n");
  EXPECT_EQ(digest(kSmall), plain);
  EXPECT_EQ(digest(with("names: \"gpu[001-002]\"", "names: \"gpu002,gpu001\"")), plain);
}

TEST_F(Digest, ignoresTheSecretAndTheFolder) {
  std::string plain = digest(kSmall);
  write("secrets/bmc", "another\n");
  EXPECT_EQ(digest(kSmall), plain);
  for (const char* file : {"secrets/bmc", "racks.csv"})
    write(std::string("copy/") + file, read(folder_ / file));
  ::chmod((folder_ / "copy/secrets/bmc").c_str(), 0600);
  auto copy = load(write("copy/cluster.yaml", kSmall));
  ASSERT_TRUE(copy.cluster) << checkText(copy);
  EXPECT_EQ(copy.cluster->digest, plain);
}

TEST_F(Digest, changesWithWhatIsDeclared) {
  std::set<std::string> seen{digest(kSmall)};
  auto fresh = [&](std::string_view old_text, std::string_view new_text) {
    EXPECT_TRUE(seen.insert(digest(with(old_text, new_text))).second)
        << old_text << " → " << new_text;
  };
  fresh("name: small", "name: other");
  fresh("version: 2.1.0", "version: 2.1.1");
  fresh("gpus: 8", "gpus: 4");
  fresh("rails: 2", "rails: 4");
  fresh("pkey: 0x10", "pkey: 0x11");
  fresh("order: [BMC]", "order: [BIOS]");
  fresh("[host, gpu]", "[host]");
  fresh("level: quick", "level: long");
  fresh("username: admin", "username: root");
  fresh("suite: noble", "suite: jammy");
  fresh("module.rdma_rxe: loaded", "package.rdma-core: \"44.*\"");
  fresh("52:54:00:20:01:01", "52:54:00:20:01:02");
  fresh("unit: 3", "unit: 4");
  fresh("rails: 2", "rails: 2\n    switch_firmware: 31.2012.1024");
  fresh("rails: 2",
        "rails: 2\n    switches: [{names: leaf-su1-r0, rack: r9, firmware: 31.2012.1024}]");
  fresh("[host, gpu]", "[host, gpu], checks: {host.gemm: {min_gflops: 1500}}");
  fresh("[gpu001, controller]", "[controller, gpu001]");
}

}  // namespace
}  // namespace muster::inventory
