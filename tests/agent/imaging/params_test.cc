// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::agent {
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
  EXPECT_EQ(params->agent_url, "https://10.20.0.1:8443");
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

}  // namespace
}  // namespace muster::agent
