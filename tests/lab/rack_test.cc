// SPDX-License-Identifier: Apache-2.0
// The pure part of the lab: names, domains, slurm.conf.
#include "lab/rack.h"

#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "lab/vbmc/config.h"
#include "tests/lab/lab_cluster.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::lab {
namespace {

Rack rackOf(const inventory::Cluster& cluster) {
  auto rack = planRack(cluster, Paths{"/run/muster-lab/t", "/run/muster-lab/t/disks"}, Accel::Tcg);
  EXPECT_TRUE(rack) << rack.error().str();
  return *rack;
}

/// Compares with the file, or writes it when UPDATE_GOLDEN is set.
void expectGolden(const std::string& name, const std::string& text) {
  auto file = test::sourceFolder() / "tests/lab/golden" / name;
  if (std::getenv("UPDATE_GOLDEN")) {
    ASSERT_TRUE(io::makeDirs(file.parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(file, text));
  }
  auto golden = io::readFile(file);
  ASSERT_TRUE(golden) << golden.error().str();
  EXPECT_EQ(text, *golden);
}

TEST(DomainXml, uefiNodeThatStartsFromTheNetwork) {
  auto rack = rackOf(labCluster("t"));
  expectGolden("uefi-network.xml",
               domainXml(rack.nodes[0].domain, {vbmc::BootDevice::Network, "1.4.0"}));
}

TEST(DomainXml, biosNodeThatStartsFromItsDisk) {
  auto rack = rackOf(labCluster("t"));
  expectGolden("bios-disk.xml", domainXml(rack.nodes[1].domain, {vbmc::BootDevice::Disk, "1.4.2"}));
}

TEST(DomainXml, aNodeOfAnotherProcessorIsEmulatedWithItsBoard) {
  auto cluster = labCluster("t");
  cluster.profiles.at(cluster.nodes[0].profile).arch = Architecture::Arm64;
  auto rack = planRack(cluster, Paths{"/run/muster-lab/t", "/run/muster-lab/t/disks"}, Accel::Kvm);
  ASSERT_TRUE(rack) << rack.error().str();
  EXPECT_EQ(rack->nodes[0].domain.accel, Accel::Tcg) << "the host's processor is another one";
  expectGolden("arm64-network.xml",
               domainXml(rack->nodes[0].domain, {vbmc::BootDevice::Network, "1.4.0"}));
  const auto again = domainFromJson(toJson(rack->nodes[0].domain));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->arch, Architecture::Arm64);
}

TEST(DomainXml, aVirtualCdComesBeforeDiskAndNetworkForThisStart) {
  auto rack = rackOf(labCluster("t"));
  vbmc::StartOptions start{vbmc::BootDevice::Disk, "1.4.0", "http://10.77.0.1/m.iso", "/run/m.iso"};
  auto xml = domainXml(rack.nodes[0].domain, start);
  EXPECT_NE(xml.find("<source file='/run/m.iso'/>\n      <target dev='sda' bus='sata'/>"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<boot order='1'/>\n      <alias name='ua-cd'/>"), std::string::npos);
  EXPECT_NE(xml.find("<boot order='2'/>\n    </disk>"), std::string::npos) << "the disk follows";
  EXPECT_NE(xml.find("<boot order='3'/>\n    </interface>"), std::string::npos);
  rack.nodes[0].domain.arch = Architecture::Arm64;
  EXPECT_NE(domainXml(rack.nodes[0].domain, start).find("bus='scsi'"), std::string::npos)
      << "its board has no SATA";
}

TEST(DomainXml, kvmUsesTheHostsProcessor) {
  auto spec = rackOf(labCluster("t")).nodes[0].domain;
  spec.accel = Accel::Kvm;
  auto xml = domainXml(spec, {});
  EXPECT_NE(xml.find("<domain type='kvm'>"), std::string::npos);
  EXPECT_NE(xml.find("host-passthrough"), std::string::npos);
}

TEST(DomainXml, textFromTheInventoryCannotBreakOut) {
  auto spec = rackOf(labCluster("t")).nodes[0].domain;
  spec.gpu_model = "</entry><x a='1'>&";
  EXPECT_NE(domainXml(spec, {}).find("&lt;/entry&gt;&lt;x a=&apos;1&apos;&gt;&amp;"),
            std::string::npos);
}

TEST(Rack, serialsAndUuidsDependOnTheNamesAlone) {
  EXPECT_EQ(serialOf("demo", "gpu001"), serialOf("demo", "gpu001"));
  EXPECT_NE(serialOf("demo", "gpu001"), serialOf("demo", "gpu002"));
  EXPECT_NE(uuidOf("demo", "gpu001"), uuidOf("other", "gpu001"));
  EXPECT_EQ(uuidOf("demo", "gpu001").size(), 36u);
  EXPECT_EQ(diskSerialOf("gpu001"), "muster-gpu001");
  EXPECT_LE(diskSerialOf("a-node-with-a-very-long-name").size(), 20u);
}

TEST(Rack, takesTheDeclaredSerial) {
  auto cluster = labCluster("t");
  cluster.nodes[0].serial = "J7XK2";
  EXPECT_EQ(rackOf(cluster).nodes[0].domain.serial, "J7XK2");
}

TEST(Rack, refusesBmcsThatItCannotServe) {
  for (auto url : {"libvirt:gpu001", "http://10.77.250.1", "https://bmc1.example",
                   "https://192.168.1.1", "https://10.77.0.1", "https://10.77.250.2"}) {
    auto cluster = labCluster("t");
    cluster.nodes[0].bmc.url = url;
    auto rack = planRack(cluster, Paths{"/run/l", "/run/l"}, Accel::Tcg);
    ASSERT_FALSE(rack) << url;
    EXPECT_EQ(rack.error().code(), ErrorCode::InvalidInput);
  }
}

TEST(Rack, refusesNamesAndFoldersThatDoNotFit) {
  EXPECT_FALSE(planRack(labCluster("a b"), Paths{"/run/l", "/run/l"}, Accel::Tcg));
  EXPECT_FALSE(planRack(labCluster(std::string(40, 'x')), Paths{"/run/l", "/run/l"}, Accel::Tcg));
  EXPECT_FALSE(
      planRack(labCluster("t"), Paths{"/run/" + std::string(100, 'x'), "/run/l"}, Accel::Tcg));
}

TEST(SlurmConf, forControllerAndForNodes) {
  auto cluster = labCluster("t");
  auto rack = rackOf(cluster);
  expectGolden("slurm.conf", slurmConf(cluster, rack, true));
  expectGolden("slurm-node.conf", slurmConf(cluster, rack, false));
}

TEST(SlurmConf, hasAPartitionAlsoWhereNoNodeIsForSlurm) {
  auto cluster = labCluster("t");
  cluster.pools.clear();
  const auto conf = slurmConf(cluster, rackOf(cluster), true);
  EXPECT_THAT(conf, testing::HasSubstr("\nPartitionName=all Nodes=" + cluster.nodes[0].name.str()))
      << "slurmctld does not start without";
}

TEST(VbmcConfig, survivesTheFile) {
  auto rack = rackOf(labCluster("t"));
  vbmc::Config config{rack.libvirt_uri,
                      rack.paths.bmc(),
                      {{"10.77.250.1", 443, {"admin", "salt", "hash"}, rack.nodes[0].domain}}};
  auto read = vbmc::Config::parse(config.str());
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->str(), config.str());
  EXPECT_EQ(read->bmcs[0].domain.mac, rack.nodes[0].domain.mac);
  EXPECT_FALSE(vbmc::Config::parse("{}"));
}

}  // namespace
}  // namespace muster::lab
