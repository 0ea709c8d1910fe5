// SPDX-License-Identifier: Apache-2.0
// What the agent takes of a task, and what it refuses before a disk is touched.
#include "wire/write_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::wire {
namespace {

using nlohmann::json;

json good() {
  return {
      {"index_url", "http://10.20.0.1:8080/images/d/index.json"},
      {"pack_url", "http://10.20.0.1:8080/images/d/pack"},
      {"digest", std::string(64, 'd')},
      {"signing_public_pem", "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n"},
      {"disk", "serial:S1"},
      {"wipe_allowed", true},
      {"data_wipe_allowed", true},
      {"hostname", "gpu001"},
      {"address_cidr", "10.20.0.11/16"},
      {"kernel_args", {"quiet", "iommu=pt"}},
      {"authorized_keys", {"ssh-ed25519 AAAA me@there"}},
      {"boot", "bios"},
      {"agent", {{"url", "https://10.20.0.1:8443"}, {"ca_pem", "-----BEGIN CERTIFICATE-----\n"}}}};
}

TEST(WriteImageParams, readsWhatTheControllerSends) {
  const auto params = parseWriteImageParams(good().dump());
  ASSERT_TRUE(params) << params.error().str();
  EXPECT_EQ(params->disk, "serial:S1");
  EXPECT_TRUE(params->wipe_allowed);
  EXPECT_TRUE(params->data_wipe_allowed);
  EXPECT_EQ(params->address_cidr, "10.20.0.11/16");
  EXPECT_THAT(params->kernel_args, testing::ElementsAre("quiet", "iommu=pt"));
  EXPECT_EQ(params->agent.url, "https://10.20.0.1:8443");
}

TEST(WriteImageParams, withoutAWordAboutWipingNothingIsWiped) {
  auto params = good();
  params.erase("wipe_allowed");
  params.erase("data_wipe_allowed");
  EXPECT_FALSE(parseWriteImageParams(params.dump())->wipe_allowed);
  EXPECT_FALSE(parseWriteImageParams(params.dump())->data_wipe_allowed)
      << "what is not said is not allowed";
}

TEST(WriteImageParams, addressesMayComeByDhcp) {
  auto params = good();
  params["address_cidr"] = "dhcp";
  EXPECT_EQ(parseWriteImageParams(params.dump())->address_cidr, "");
  params["address_cidr"] = "10.0.0.1/8";
  params["dhcp"] = true;
  EXPECT_EQ(parseWriteImageParams(params.dump())->address_cidr, "");
}

TEST(WriteImageParams, refusesWhatIsMissingOrCouldDoHarm) {
  const std::vector<std::pair<const char*, json>> faults{
      {"index_url", nullptr},
      {"digest", ""},
      {"hostname", "gpu001\nevil"},
      {"hostname", "../etc"},
      {"hostname", "-x"},
      {"wipe_allowed", "yes"},
      {"data_wipe_allowed", 1},
      {"boot", "floppy"},
      {"kernel_args", {"quiet; halt"}},
      {"kernel_args", {"a\nb"}},
      {"authorized_keys", {"key\nkey"}},
      {"authorized_keys", 5},
      {"address_cidr", "10.0.0.1/8\nDNS=6.6.6.6"},
      {"gateway", "$(reboot)"},
      {"dns", {"x y"}},
      {"agent", "none"},
      {"agent", json::object()}};
  for (const auto& [key, value] : faults) {
    auto params = good();
    params[key] = value;
    const auto parsed = parseWriteImageParams(params.dump());
    ASSERT_FALSE(parsed) << key << " " << value;
    EXPECT_EQ(parsed.error().code(), ErrorCode::InvalidInput);
  }
  EXPECT_FALSE(parseWriteImageParams("[]"));
  EXPECT_FALSE(parseWriteImageParams("{"));
}

TEST(WriteImageParams, areReadAsTheyArePrinted) {
  const auto params = parseWriteImageParams(good().dump());
  ASSERT_TRUE(params) << params.error().str();
  auto printed = good();
  printed["dns"] = json::array();
  EXPECT_EQ(json::parse(toJson(*params)), printed);
}

TEST(WriteImageParams, knowNoOtherLevelsAndFileSystems) {
  auto params = good();
  params["storage"] = {{{"name", "a"},
                        {"disks", "smallest"},
                        {"raid", 10},
                        {"count", 4},
                        {"volumes", {{{"name", "v"}, {"mount", "/v"}, {"filesystem", "ext4"}}}}}};
  const auto parsed = parseWriteImageParams(params.dump());
  ASSERT_TRUE(parsed) << parsed.error().str();
  EXPECT_EQ(parsed->storage.at(0).raid, RaidLevel::Raid10);
  EXPECT_EQ(parsed->storage.at(0).volumes.at(0).filesystem, FileSystem::Ext4);
  params["storage"][0]["raid"] = 4;
  EXPECT_THAT(parseWriteImageParams(params.dump()).error().text(),
              testing::HasSubstr("RAID levels 0, 1, 5, 6 and 10"));
  params["storage"][0]["raid"] = 10;
  params["storage"][0]["volumes"][0]["filesystem"] = "btrfs";
  const auto btrfs = parseWriteImageParams(params.dump());
  ASSERT_FALSE(btrfs);
  EXPECT_EQ(btrfs.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(btrfs.error().text(), testing::HasSubstr("btrfs"));
}

TEST(WriteImageParams, whatIsNotSaidOfDisksIsTheUsual) {
  auto params = good();
  params["storage"] = {
      {{"name", "a"}, {"disks", "smallest"}, {"volumes", {{{"name", "v"}, {"mount", "/v"}}}}}};
  params["root"] = json::object();
  const auto parsed = parseWriteImageParams(params.dump());
  ASSERT_TRUE(parsed) << parsed.error().str();
  StorageSet set;
  set.name = "a";
  set.disks = "smallest";
  set.volumes = {{"v", 0, FileSystem::Xfs, "/v"}};
  EXPECT_EQ(parsed->storage, std::vector{set});
  EXPECT_EQ(parsed->root, RootLayout{});
}

TEST(PeerParams, areTakenStrictlyOrNotAtAll) {
  const auto with = [](const json& peers) {
    auto params = good();
    params["peers"] = peers;
    return parseWriteImageParams(params.dump());
  };
  EXPECT_FALSE(parseWriteImageParams(good().dump())->peers);
  const json peers{{"metainfo_url", "u"},
                   {"metainfo_sha256", std::string(64, 'a')},
                   {"announce_url", "a"},
                   {"share_url", "s"},
                   {"pack_bytes", 7u}};
  const auto parsed = with(peers);
  ASSERT_TRUE(parsed && parsed->peers);
  EXPECT_EQ(parsed->peers->pack_bytes, 7u);
  for (const auto& [key, value] : peers.items()) {
    auto bad = peers;
    bad.erase(key);
    EXPECT_EQ(with(bad).error().code(), ErrorCode::InvalidInput) << key;
    bad[key] = nullptr;
    EXPECT_EQ(with(bad).error().code(), ErrorCode::InvalidInput) << key;
  }
  for (const char* none : {"[]", "7", "null"}) EXPECT_FALSE(with(json::parse(none))) << none;
}

}  // namespace
}  // namespace muster::wire
