// SPDX-License-Identifier: Apache-2.0
// storage, user_data, image_mirrors: declared completely or refused.
#include "inventory/model/disk_layout.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/model/user_data.h"
#include "tests/inventory/inventory_fixture.h"

#include "inventory/schema/json.h"

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StorageTest : public InventoryTest {
 protected:
  std::vector<std::string> declaring(const std::string& keys) {
    return lines(loadYaml(with("image: noble", "image: noble, " + keys)));
  }
  /// With an image that has the programs of every layout.
  Loaded loadYaml(std::string yaml) {
    constexpr std::string_view kPackages = "packages: [linux-generic]";
    if (const auto at = yaml.find(kPackages); at != std::string::npos)
      yaml.replace(at, kPackages.size(), "packages: [linux-generic, mdadm, lvm2, cryptsetup]");
    return InventoryTest::loadYaml(yaml);
  }
  static std::string set(const std::string& keys) { return "storage: {scratch: {" + keys + "}}"; }
};

TEST_F(StorageTest, readsEveryKey) {
  auto loaded =
      loadYaml(with("image: noble",
                    "image: noble, storage: {scratch: {disks: 'size:3TB-', count: 8, raid: raid0, "
                    "encrypt: true, sector_bytes: 4096, volumes: [{name: home, size_gib: 500, "
                    "filesystem: ext4, mount: /home}, {name: rest, mount: /scratch}]}}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& sets = loaded.cluster->profiles.begin()->second.storage;
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].name, "scratch");
  EXPECT_EQ(sets[0].count, 8);
  EXPECT_EQ(sets[0].raid, RaidLevel::Raid0);
  EXPECT_TRUE(sets[0].encrypt);
  EXPECT_EQ(sets[0].sector_bytes, 4096);
  ASSERT_EQ(sets[0].volumes.size(), 2u);
  EXPECT_EQ(sets[0].volumes[0].filesystem, FileSystem::Ext4);
  EXPECT_EQ(sets[0].volumes[1].filesystem, FileSystem::Xfs);
  EXPECT_EQ(sets[0].volumes[1].mount, "/scratch");
}

TEST_F(StorageTest, refusesWhatCannotBe) {
  const std::string volume = ", volumes: [{name: a, mount: /a}]";
  EXPECT_THAT(declaring(set("disks: 'serial:A'" + volume)), IsEmpty());
  EXPECT_THAT(declaring(set("disks: /dev/sdb" + volume)),
              ElementsAre(HasSubstr("device names change")));
  EXPECT_THAT(declaring(set("disks: 'size:3-4'" + volume)),
              ElementsAre(HasSubstr("size:LOW-HIGH")));
  EXPECT_THAT(declaring(set("disks: smallest, count: 2" + volume)),
              ElementsAre(HasSubstr("2 disks without RAID")));
  EXPECT_THAT(declaring(set("disks: smallest, raid: raid1" + volume)),
              ElementsAre(HasSubstr("RAID 1 needs 2 disks at least")));
  EXPECT_THAT(declaring(set("disks: smallest, raid: raid5, count: 3" + volume)), IsEmpty());
  EXPECT_THAT(declaring(set("disks: smallest, raid: raid6, count: 3" + volume)),
              ElementsAre(HasSubstr("RAID 6 needs 4 disks at least")));
  EXPECT_THAT(declaring(set("disks: smallest, raid: raid4, count: 4" + volume)),
              ElementsAre(HasSubstr("raid4")));
  EXPECT_THAT(declaring(set("disks: smallest, sector_bytes: 520" + volume)),
              ElementsAre(testing::AllOf(HasSubstr("no sectors of 520 bytes"),
                                         HasSubstr("write 512 or 4096"))));
  EXPECT_THAT(declaring(set("disks: smallest")), ElementsAre(HasSubstr("volumes")));
  EXPECT_THAT(declaring(set("disks: smallest, volumes: []")), ElementsAre(HasSubstr("at least 1")));
  EXPECT_THAT(declaring(set("disks: smallest, volumes: [{name: a, mount: /}]")),
              ElementsAre(HasSubstr("absolute path")));
  EXPECT_THAT(declaring(set("disks: smallest, volumes: [{name: a, mount: /boot/x}]")),
              ElementsAre(HasSubstr("absolute path")));
  EXPECT_THAT(
      declaring(set("disks: smallest, volumes: [{name: a, mount: /a}, {name: b, mount: /b}]")),
      ElementsAre(HasSubstr("takes all that is left")));
  EXPECT_THAT(
      declaring(set(
          "disks: smallest, volumes: [{name: a, mount: /a, size_gib: 1}, {name: a, mount: /b}]")),
      ElementsAre(HasSubstr("two volumes a")));
}

TEST_F(StorageTest, rootIsReadAndChecked) {
  auto loaded = loadYaml(with("image: noble",
                              "image: noble, disk: 'size:400GB-500GB', root: {count: 2, raid: "
                              "raid1, encrypt: tpm, lvm_gib: 100}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& root = loaded.cluster->profiles.begin()->second.root;
  ASSERT_TRUE(root);
  EXPECT_EQ(root->count, 2);
  EXPECT_EQ(root->raid, RaidLevel::Raid1);
  EXPECT_EQ(root->encrypt, RootKey::Tpm);
  EXPECT_EQ(root->lvm_gib, 100);
  EXPECT_NE(loaded.cluster->digest, loadYaml(std::string(kSmall)).cluster->digest);
  EXPECT_THAT(declaring("root: {count: 2}"), ElementsAre(HasSubstr("several disks need RAID")));
  EXPECT_THAT(declaring("root: {raid: raid1}"), ElementsAre(HasSubstr("two disks at least")));
  EXPECT_THAT(declaring("root: {count: 1}"), ElementsAre(HasSubstr("a system disk has anyway")));
  EXPECT_THAT(declaring("root: {raid: raid5, count: 3}"), ElementsAre(HasSubstr("raid5")));
  EXPECT_THAT(declaring("root: {encrypt: password}"), ElementsAre(HasSubstr("password")));
}

TEST_F(StorageTest, aLiveImageHasNoUseForDisks) {
  const std::string live =
      with("noble: {build: {suite: noble, packages: [linux-generic]}}",
           "noble: {kind: live, build: {suite: noble, packages: [linux-generic]}}");
  EXPECT_THAT(lines(loadYaml(live)), IsEmpty());
  for (const char* keys :
       {"disk: smallest", "root: {encrypt: tpm}",
        "storage: {scratch: {disks: smallest, volumes: [{name: a, mount: /a}]}}"})
    EXPECT_THAT(lines(loadYaml(with("image: noble", std::string("image: noble, ") + keys, live))),
                ElementsAre(HasSubstr("image noble is live: it runs in memory")))
        << keys;
}

TEST_F(StorageTest, userDataCountsByItsContent) {
  const auto digestWith = [this](const std::string& content) {
    EXPECT_TRUE(!write("user-data", content).empty());
    auto loaded = loadYaml(with("image: noble", "image: noble, user_data: user-data"));
    EXPECT_THAT(lines(loaded), IsEmpty());
    return loaded.cluster ? loaded.cluster->digest : std::string();
  };
  const auto first = digestWith("#cloud-config\n");
  EXPECT_EQ(digestWith("#cloud-config\n"), first);
  EXPECT_NE(digestWith("#cloud-config\nruncmd: []\n"), first);
  EXPECT_THAT(declaring("user_data: not-there"), ElementsAre(HasSubstr("cannot be read")));
}

TEST_F(StorageTest, aNodesOwnDisksAreDeclaredInOnePlace) {
  const auto said =
      lines(loadYaml(with("image: noble", "image: noble, mounts: [local]") +
                     "file_systems: {local: {kind: raid, source: '*PM17*', mount: /scratch}}\n"));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("nfs, lustre, gpfs"));
}

TEST_F(StorageTest, userDataThatNobodyCouldUseIsRefused) {
  const auto refused = [this](const std::string& content) {
    EXPECT_TRUE(!write("user-data", content).empty());
    const auto said = declaring("user_data: user-data");
    return said.empty() ? std::string() : said.front();
  };
  EXPECT_THAT(refused("#cloud-config\nruncmd: [a\n"), HasSubstr("no YAML"));
  EXPECT_THAT(refused("#cloud-config\n- a\n"), HasSubstr("map of keys"));
  EXPECT_THAT(refused("hello\n"), HasSubstr("neither"));
  EXPECT_THAT(refused("{\"ignition\": "), HasSubstr("begins like JSON"));
  EXPECT_THAT(refused(R"({"storage":{}})"), HasSubstr("ignition.version"));
  EXPECT_THAT(refused(R"({"ignition":{"version":"2.2.0"}})"), HasSubstr("3.x"));
  EXPECT_THAT(refused("#!/bin/sh\necho ${muster.hostnme}\n"), HasSubstr("${muster.hostname}"));
  EXPECT_THAT(refused("#!/bin/sh\n" + std::string(61 << 10, '#')), HasSubstr("more than 60 KiB"));
  EXPECT_THAT(refused(R"({"ignition":{"version":"3.3.0"}})"), IsEmpty());
  EXPECT_THAT(refused("#!/bin/sh\necho $HOME ${muster.rack}\n"), IsEmpty());
}

TEST(UserDataPlaces, becomeTheNodes) {
  Node node;
  node.name = NodeName("gpu007");
  node.address = *Ipv4::parse("10.20.0.7");
  node.mac = *Mac::parse("52:54:00:00:00:07");
  node.rack = "r1";
  node.profile = "hgx";
  Profile profile;
  profile.user_data =
      "#!/bin/sh\necho ${muster.hostname} ${muster.address} ${muster.mac} ${muster.rack} "
      "${muster.profile} ${HOME}\n";
  EXPECT_EQ(userDataFor(profile, node),
            "#!/bin/sh\necho gpu007 10.20.0.7 52:54:00:00:00:07 r1 hgx ${HOME}\n");
}

TEST_F(StorageTest, whatIsNotDeclaredDoesNotChangeTheDigest) {
  auto loaded = loadYaml(std::string(kSmall));
  ASSERT_TRUE(loaded.cluster);
  const auto json = declaredJson(*loaded.cluster);
  const auto text = json["profiles"].dump() + json["networks"]["provisioning"].dump();
  for (const char* key : {"storage", "user_data", "image_mirrors"})
    EXPECT_THAT(text, ::testing::Not(HasSubstr(key)));
}

}  // namespace
}  // namespace muster::inventory
