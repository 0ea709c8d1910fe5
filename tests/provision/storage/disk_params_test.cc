// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/disk_params.h"

#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "tests/provision/clusters.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What a task must have besides.
wire::WriteImageParams taskParams() {
  wire::WriteImageParams params;
  params.index_url = "http://c/images/d/index.json";
  params.pack_url = "http://c/images/d/pack";
  params.digest = "d";
  params.signing_public_pem = "PEM";
  params.hostname = "gpu001";
  params.agent = {"https://c:8443", "CA"};
  return params;
}

TEST(DiskParams, areUnderstoodByTheAgent) {
  auto cluster = twoNodes();
  auto& network = cluster.networks.front();
  network.image_mirrors = {"http://cache-a:8080/", "http://cache-b"};
  auto& profile = cluster.profiles.at("uefi");
  profile.user_data = "#cloud-config\nfqdn: ${muster.hostname}.example\n";
  inventory::StorageSet set;
  set.name = "scratch";
  set.disks = "size:3TB-";
  set.count = 4;
  set.raid = inventory::RaidLevel::Raid0;
  set.encrypt = true;
  set.volumes = {{"home", 10, inventory::FileSystem::Ext4, "/home"},
                 {"rest", 0, inventory::FileSystem::Xfs, "/scratch"}};
  profile.storage = {set};
  auto params = taskParams();
  addDiskParams(profile, cluster.nodes[0], network.image_mirrors, params);
  const auto parsed = wire::parseWriteImageParams(toJson(params));
  ASSERT_TRUE(parsed) << parsed.error().str();
  EXPECT_THAT(parsed->mirror_urls,
              ElementsAre("http://cache-a:8080/images/d/pack", "http://cache-b/images/d/pack"));
  EXPECT_EQ(parsed->user_data, "#cloud-config\nfqdn: gpu001.example\n");
  ASSERT_EQ(parsed->storage.size(), 1u);
  EXPECT_EQ(parsed->storage[0].raid, wire::RaidLevel::Raid0);
  EXPECT_EQ(parsed->storage[0].count, 4);
  EXPECT_TRUE(parsed->storage[0].encrypt);
  ASSERT_EQ(parsed->storage[0].volumes.size(), 2u);
  EXPECT_EQ(parsed->storage[0].volumes[0].size_gib, 10);
  EXPECT_EQ(parsed->storage[0].volumes[0].filesystem, wire::FileSystem::Ext4);
  EXPECT_EQ(parsed->storage[0].volumes[1].mount, "/scratch");
}

TEST(DiskParams, aRootOfSeveralPartsArrivesAsDeclared) {
  auto cluster = twoNodes();
  auto& profile = cluster.profiles.at("uefi");
  profile.root =
      inventory::RootLayout{2, inventory::RaidLevel::Raid1, inventory::RootKey::Tpm, 100};
  auto params = taskParams();
  addDiskParams(profile, cluster.nodes[0], {}, params);
  const auto parsed = wire::parseWriteImageParams(toJson(params));
  ASSERT_TRUE(parsed) << parsed.error().str();
  ASSERT_TRUE(parsed->root);
  EXPECT_EQ(parsed->root->count, 2);
  EXPECT_EQ(parsed->root->raid, wire::RaidLevel::Raid1);
  EXPECT_EQ(parsed->root->encrypt, wire::RootKey::Tpm);
  EXPECT_EQ(parsed->root->lvm_gib, 100);
  for (const char* root :
       {"[]", R"({"count":-1})", R"({"encrypt":"password"})", R"({"raid":"1"})"}) {
    auto task = nlohmann::json::parse(toJson(params));
    task["root"] = nlohmann::json::parse(root);
    EXPECT_FALSE(wire::parseWriteImageParams(task.dump())) << root;
  }
}

TEST(DiskParams, sayNothingWhereNothingIsDeclared) {
  const auto cluster = twoNodes();
  auto params = taskParams();
  addDiskParams(cluster.profiles.at("uefi"), cluster.nodes[0],
                cluster.networks.front().image_mirrors, params);
  EXPECT_EQ(toJson(params), toJson(taskParams()));
}

TEST(DiskParams, ofTheWrongShapeAreRefusedBeforeADiskIsTouched) {
  for (const char* storage :
       {"{}", "[1]", R"([{"name":"a"}])", R"([{"name":"../a","disks":"smallest"}])",
        R"([{"name":"a","disks":"smallest","count":-1}])",
        R"([{"name":"a","disks":"smallest","volumes":[{"name":"v"}]}])",
        R"([{"name":"a","disks":"smallest","raid":"0"}])"}) {
    auto params = nlohmann::json::parse(toJson(taskParams()));
    params["storage"] = nlohmann::json::parse(storage);
    const auto parsed = wire::parseWriteImageParams(params.dump());
    ASSERT_FALSE(parsed) << storage;
    EXPECT_EQ(parsed.error().code(), ErrorCode::InvalidInput);
  }
}

TEST(SourceFindings, nameCorruptServersAndPeers) {
  const auto found = sourceFindings(
      NodeName("gpu001"),
      R"({"peers":{"corrupt_mirrors":["http://cache-a/pack: piece 7 of the pack is corrupt"],"banned_peers":2,"wrong_pieces":9}})",
      WallTime{});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].text,
              testing::AllOf(HasSubstr("http://cache-a/pack"), HasSubstr("piece 7")));
  EXPECT_THAT(found[1].text, testing::AllOf(HasSubstr("2 other nodes"), HasSubstr("9 pieces")));
  for (const char* text : {R"({"peers":7})", R"({"peers":{"liars":[7],"banned_peers":0}})",
                           R"({"peers":{"banned_peers":"2"}})"})
    EXPECT_THAT(sourceFindings(NodeName("gpu001"), text, WallTime{}), IsEmpty());
}

TEST(SourceFindings, nameTheMirrorAndWhatToDo) {
  const auto found = sourceFindings(
      NodeName("gpu001"),
      R"({"dropped_mirrors":["http://cache-a/pack: chunk 3 of the image is corrupt"]})",
      WallTime{});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, testing::AllOf(HasSubstr("gpu001"), HasSubstr("http://cache-a/pack"),
                                            HasSubstr("corrupt")));
  EXPECT_FALSE(found[0].what_to_do.empty());
  EXPECT_THAT(
      sourceFindings(
          NodeName("gpu001"),
          R"({"dropped_mirrors":["http://10.20.0.2:8080/images/d/pack: Connection refused"]})",
          WallTime{}, {"http://10.20.0.2:8080"}),
      IsEmpty())
      << "it stands by";
  for (const char* text :
       {"{}", "", "[]", R"({"dropped_mirrors":[]})", R"({"dropped_mirrors":[7]})"})
    EXPECT_THAT(sourceFindings(NodeName("gpu001"), text, WallTime{}), IsEmpty());
}

}  // namespace
}  // namespace muster::provision
