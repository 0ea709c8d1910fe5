// SPDX-License-Identifier: Apache-2.0
// Answers about parts, as the pages of the API describe them, and what is no such answer.
#include "api/record_values.h"

#include "api/tokens.h"
#include "app/fabric/fabric_look.h"
#include "app/firmware/firmware_baselines.h"
#include "app/images.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/discovery.h"
#include "app/site/site_records.h"
#include "app/validation/certificates.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "bmc/console/boot_log.h"
#include "lifecycle/audit/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

namespace muster::api {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// As a client has read it from the wire.
json sent(const json& answer) { return jsonOrNone(jsonText(answer), kServerJson); }

json image() {
  return sent({{"image", "bookworm"},
               {"digest", std::string(64, 'a')},
               {"key", "k1"},
               {"predecessor", std::string(64, 'b')},
               {"size_bytes", 10'737'418'240},
               {"pack_bytes", 912'000'000},
               {"declared", true},
               {"profiles", {"gpu-node", "login"}},
               {"signers", {"0123456789abcdef"}},
               {"fault", ""}});
}

TEST(RecordValues, anImage) {
  const auto made = keptImageFrom(image());
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(made->name, "bookworm");
  EXPECT_EQ(made->key, "k1");
  EXPECT_EQ(made->size_bytes, 10'737'418'240u);
  EXPECT_EQ(made->pack_bytes, 912'000'000u);
  EXPECT_EQ(made->predecessor, std::string(64, 'b'));
  EXPECT_THAT(made->profiles, ElementsAre("gpu-node", "login"));
  EXPECT_THAT(made->signers, ElementsAre("0123456789abcdef"));
  EXPECT_TRUE(made->declared);
  auto older = image();  // of a server that does not say these yet
  older.erase("key");
  older.erase("predecessor");
  EXPECT_TRUE(keptImageFrom(older));
}

TEST(RecordValues, aCableWithoutHealthAndOneWithIt) {
  json cable = {{"a", "gpu001 mlx5_0"},
                {"a_port", 1},
                {"b", "leaf1"},
                {"b_port", 7},
                {"level", 1},
                {"width_speed", "4x NDR"},
                {"state", "excused"},
                {"faults",
                 {{{"kind", "missing-link"},
                   {"declared", "leaf1 port 7"},
                   {"found", "no cable"},
                   {"repair", "plug it in"}}}}};
  auto made = fabricCableFrom(sent(cable));
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(sent(toJson(*made)), sent(cable));
  EXPECT_FALSE(made->isFaulty()) << "it is excused";
  cable["health"] = {{"grade", "bad"},
                     {"complaints", {"many errors"}},
                     {"advice", "clean it"},
                     {"transceiver", "MT1"}};
  made = fabricCableFrom(sent(cable));
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(sent(toJson(*made)), sent(cable));
  EXPECT_TRUE(made->isFaulty());
}

TEST(RecordValues, aBmcWhosePasswordIsBeingChanged) {
  const json bmc = {{"node", "gpu001"},
                    {"bmc", "https://10.20.250.1"},
                    {"pin", "ab"},
                    {"trust", "first-contact"},
                    {"inventory_is_behind", false},
                    {"password_refused", true},
                    {"signer", "/etc/muster/sign"},
                    {"rotation", "interrupted"}};
  const auto made = bmcIdentityFrom(bmc);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(toJson(*made), bmc);
  EXPECT_TRUE(made->rotates);
  EXPECT_EQ(made->memory.rotation, bmc::Rotation::Interrupted);
}

/// Every member that is missing or of another kind is named; nothing is taken for empty.
template <class Make>
void refusesWhatIsBroken(const json& said, Make make, const std::set<std::string>& may_miss = {}) {
  const auto good = sent(said);
  ASSERT_TRUE(make(good)) << make(good).error().str();
  for (const auto& [key, value] : good.items()) {
    auto broken = good;
    broken[key] = json::object({{"odd", 1}});
    const auto odd = make(broken);
    ASSERT_FALSE(odd) << key;
    EXPECT_EQ(odd.error().code(), ErrorCode::Corrupt) << key;
    EXPECT_THAT(odd.error().str(), HasSubstr(key));
    broken.erase(key);
    if (may_miss.contains(key)) continue;
    const auto missing = make(broken);
    ASSERT_FALSE(missing) << key;
    EXPECT_EQ(missing.error().code(), ErrorCode::Corrupt) << key;
    EXPECT_THAT(missing.error().str(), HasSubstr(key));
  }
  for (const auto& none : {json(), json("text"), json::array(), json(7)})
    EXPECT_FALSE(make(none)) << none;
}

TEST(RecordValues, whatIsMissingOrOfAnotherKindIsNamed) {
  refusesWhatIsBroken(image(), keptImageFrom, {"key", "predecessor"});
  refusesWhatIsBroken({{"node", "gpu001"},
                       {"baseline", "2026.1"},
                       {"flashes", 2},
                       {"resets", 1},
                       {"ac_cycles", 0},
                       {"minutes", 12},
                       {"waves", json::array()},
                       {"undone", json::array()},
                       {"forbidden_now", json::array()}},
                      nodeUpgradeFrom);
  refusesWhatIsBroken({{"node", "gpu001"}, {"valid", false}, {"void_because", "expired"}},
                      certificateVerdictFrom);
  refusesWhatIsBroken({{"boot", 3}, {"began", "2026-11-26T10:00:00Z"}, {"why", "power on"}},
                      keptBootFrom);
  refusesWhatIsBroken({{"pool", "batch"}, {"nodes", "gpu[001-002]"}}, poolBreakerFrom);
  refusesWhatIsBroken({{"what", "w"}, {"where", "x"}, {"what_to_do", "y"}}, anomalyFrom);
  refusesWhatIsBroken({{"id", "t1"},
                       {"name", "ci"},
                       {"role", "viewer"},
                       {"scope", {{"pools", json::array()}, {"racks", {"r1"}}, {"nodes", ""}}},
                       {"created_at", "2026-11-26T10:00:00Z"},
                       {"created_by", "anna"},
                       {"owner", "anna"},
                       {"expires_at", "2026-11-27T10:00:00Z"},
                       {"revoked", false},
                       {"login", true}},
                      tokenFrom, {"owner", "login"});
}

TEST(RecordValues, wordsThatAreNoneAreRefused) {
  auto cable = toJson(app::FabricCable{});
  cable["state"] = "sideways";
  EXPECT_THAT(fabricCableFrom(sent(cable)).error().str(), HasSubstr("state"));
  json bmc = {{"node", "gpu001"},
              {"bmc", ""},
              {"pin", ""},
              {"trust", "everybody"},
              {"inventory_is_behind", false},
              {"password_refused", false}};
  EXPECT_THAT(bmcIdentityFrom(bmc).error().str(), HasSubstr("trust"));
  EXPECT_EQ(certificateFrom(json::object()).error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(historyFrom({{"requests", json::array()}, {"actions", {7}}}).error().code(),
            ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster::api
