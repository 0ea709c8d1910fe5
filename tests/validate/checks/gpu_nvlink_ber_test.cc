// SPDX-License-Identifier: Apache-2.0
// Bit error rates of NVLinks. What a link in good health says ("15e-255" for both) is that of a
// B300 under driver 595; the limits and the packing are those that NVIDIA's DCGM 4.6 tests itself
// by (DcgmUtilitiesTests.cpp, test_field_values.py).
#include "tests/validate/simulated_gpus.h"

#include "validate/checks/nvml.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::CheckStatus;

class NvLinkBerCheck : public SimulatedGpus {
 protected:
  NvLinkBerCheck() {
    for (auto& gpu : gpus_) gpu["name"] = "NVIDIA B200", gpu["nvlink_generation"] = 5;
  }
  CheckStatus effective(unsigned mantissa, unsigned exponent, json params = json::object()) {
    return with("gpu.nvlink-ber", {{"nvlink_ber", {{"5", {{"effective", {mantissa, exponent}}}}}}},
                std::move(params));
  }
  CheckStatus symbol(unsigned mantissa, unsigned exponent, json params = json::object()) {
    return with("gpu.nvlink-ber", {{"nvlink_ber", {{"17", {{"symbol", {mantissa, exponent}}}}}}},
                std::move(params));
  }
};

TEST_F(NvLinkBerCheck, linksWithoutErrorsPassWithTheirRates) {
  const auto verdict = check("gpu.nvlink-ber");
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_EQ(verdict.values.at("gpu1.nvlink_effective_ber"), 0);
  EXPECT_EQ(verdict.values.at("gpu1.nvlink_symbol_ber"), 0);
  EXPECT_THAT(verdict.evidence[0]["seen"].get<std::string>(), HasSubstr("18 NVLinks"));
}

TEST_F(NvLinkBerCheck, theEffectiveRateMayBeOneInATrillion) {
  for (const auto& [mantissa, exponent] : {std::pair{1u, 12u}, {10u, 13u}, {15u, 200u}})
    EXPECT_EQ(effective(mantissa, exponent), CheckStatus::Pass) << mantissa << "e-" << exponent;
  for (const auto& [mantissa, exponent] : {std::pair{2u, 12u}, {11u, 13u}, {1u, 11u}, {15u, 9u}})
    EXPECT_EQ(effective(mantissa, exponent), CheckStatus::Fail) << mantissa << "e-" << exponent;
  EXPECT_EQ(effective(2, 12, {{"max_effective_ber", 1e-11}}), CheckStatus::Pass);
  EXPECT_EQ(effective(1, 12, {{"max_effective_ber", 1e-15}}), CheckStatus::Fail);
}

TEST_F(NvLinkBerCheck, noSymbolMayBeWrongAfterCorrection) {
  EXPECT_EQ(symbol(15, 255), CheckStatus::Pass);
  EXPECT_EQ(symbol(15, 238), CheckStatus::Pass) << "that is what several links say together";
  EXPECT_EQ(symbol(1, 237), CheckStatus::Fail);
  EXPECT_EQ(symbol(1, 14), CheckStatus::Fail);
  EXPECT_EQ(symbol(1, 14, {{"max_symbol_ber", 1e-14}}), CheckStatus::Pass);
}

TEST_F(NvLinkBerCheck, everyBadLinkIsNamed) {
  gpus_[1]["nvlink_ber"] = {{"3", {{"effective", {4, 9}}}},
                            {"11", {{"effective", {1, 10}}, {"symbol", {2, 15}}}}};
  const auto verdict = check("gpu.nvlink-ber");
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text,
              AllOf(HasSubstr("(serial S1)"), Not(HasSubstr("(serial S0)")),
                    HasSubstr("NVLink 3: effective bit error rate 4e-09, 1e-12 is allowed"),
                    HasSubstr("NVLink 11: effective bit error rate 1e-10"),
                    HasSubstr("NVLink 11: symbol bit error rate 2e-15, 0e+00 is allowed")));
  EXPECT_DOUBLE_EQ(verdict.values.at("gpu1.nvlink_effective_ber"), 4e-9);
  EXPECT_DOUBLE_EQ(verdict.values.at("gpu1.nvlink_symbol_ber"), 2e-15);
}

TEST_F(NvLinkBerCheck, whatIsNoRateIsNoPass) {
  EXPECT_EQ(effective(0, 0), CheckStatus::NoData) << "a driver that has not measured";
  EXPECT_EQ(symbol(0, 12), CheckStatus::NoData);
  EXPECT_EQ(with("gpu.nvlink-ber", {{"has_nvlink_ber", false}}), CheckStatus::NoData);
  gpus_[1]["has_nvlink_ber"] = false;
  EXPECT_THAT(check("gpu.nvlink-ber").text,
              AllOf(HasSubstr("NVLink 0"), HasSubstr("driver of branch 570")));
  gpus_[1]["lost"] = true;
  EXPECT_EQ(check("gpu.nvlink-ber").status, CheckStatus::NoData);
}

TEST_F(NvLinkBerCheck, linksThatAreDownHaveNoRate) {
  EXPECT_EQ(with("gpu.nvlink-ber",
                 {{"nvlinks_down", 1}, {"nvlink_ber", {{"17", {{"effective", {1, 3}}}}}}}),
            CheckStatus::Pass)
      << "gpu.nvlink fails for the link itself";
  EXPECT_EQ(with("gpu.nvlink-ber", {{"nvlinks_down", 18}}), CheckStatus::NoData)
      << "a board that has links, of which none is up";
}

TEST_F(NvLinkBerCheck, earlierGenerationsAndCardsWithoutLinksHaveNone) {
  for (auto& gpu : gpus_) gpu["name"] = "NVIDIA H100 80GB HBM3", gpu["nvlink_generation"] = 4;
  const auto hopper = check("gpu.nvlink-ber");
  EXPECT_EQ(hopper.status, CheckStatus::Pass);
  EXPECT_THAT(hopper.evidence[0]["seen"].get<std::string>(), HasSubstr("gpu.nvlink counts"));
  for (auto& gpu : gpus_) gpu["name"] = "NVIDIA L40S", gpu["nvlinks"] = 0;
  EXPECT_EQ(check("gpu.nvlink-ber").status, CheckStatus::Pass);
}

TEST_F(NvLinkBerCheck, aLimitThatIsNoRateIsAnError) {
  EXPECT_EQ(check("gpu.nvlink-ber", {{"max_effective_ber", 12}}).status, CheckStatus::Error);
  EXPECT_EQ(check("gpu.nvlink-ber", {{"max_symbol_ber", -1}}).status, CheckStatus::Error);
}

TEST_F(NvLinkBerCheck, nvmlGivesARateALink) {
  gpus_[0]["nvlinks"] = 3;
  gpus_[0]["nvlink_ber"] = {{"1", {{"effective", {13, 11}}}}};
  (void)check("gpu.nvlink-ber");
  const auto nvml = Nvml::open();
  ASSERT_TRUE(nvml) << nvml.error().str();
  const auto links = nvml->nvLinkBer(0);
  ASSERT_TRUE(links) << links.error().str();
  ASSERT_EQ(links->size(), 3u);
  EXPECT_EQ(links->at(0).effective, 0);
  EXPECT_DOUBLE_EQ(links->at(1).effective.value(), 1.3e-10);
  EXPECT_EQ(links->at(1).symbol, 0);
  EXPECT_FALSE(nvml->nvLinkBer(7)) << "there is no such GPU";
}

}  // namespace
}  // namespace muster::validate
