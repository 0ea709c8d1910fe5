// SPDX-License-Identifier: Apache-2.0
// Reasons of throttling. The forms are those that amd-smi's change log and documentation show (ROCm
// 6.2 to 7), and of a published answer about GPUs that have none of it.
#include "tests/validate/fake_host.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::CheckStatus;

/// Counters and words of an MI300X that had been at its power limit twelve times.
json throttleOf(std::string_view suffix = "status") {
  json out{{"accumulation_counter", 1226415116},
           {"prochot_accumulated", 0},
           {"ppt_accumulated", 12},
           {"socket_thermal_accumulated", 0},
           {"vr_thermal_accumulated", 0},
           {"hbm_thermal_accumulated", 0},
           {"gfx_clk_below_host_limit_accumulated", "N/A"},
           {"gfx_clk_below_host_limit_power_accumulated", {{"xcp_0", {0, 0, 0, "N/A"}}}}};
  for (const char* reason : {"prochot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal"}) {
    out[fmt::format("{}_violation_{}", reason, suffix)] = "NOT ACTIVE";
    out[fmt::format("{}_violation_activity", reason)] = {{"value", 0}, {"unit", "%"}};
  }
  return out;
}

class AmdThrottle : public FakeHost {
 protected:
  AmdThrottle() {
    for (int gpu = 0; gpu < 2; ++gpu)
      then_.push_back(
          {{"gpu", gpu}, {"power", {{"throttle_status", "N/A"}}}, {"throttle", throttleOf()}});
    now_ = then_;
    host_.run = [this](const io::Command& command) -> Result<io::ProcessExit> {
      ran_.push_back(command);
      const auto& gpus = ran_.size() % 2 ? then_ : now_;
      return io::ProcessExit{0, (wrapped_ ? json{{"gpu_data", gpus}} : gpus).dump(4), ""};
    };
  }
  Verdict seen(json params = {{"gpus", 2}}) {
    ran_.clear();
    params["window_seconds"] = 0;
    return check("gpu.amd-throttle", params);
  }

  json then_ = json::array(), now_;
  bool wrapped_ = false;
};

TEST_F(AmdThrottle, thePowerLimitAloneIsNoFault) {
  now_[1]["throttle"]["ppt_accumulated"] = 9'000;
  now_[1]["throttle"]["ppt_violation_status"] = "ACTIVE";
  const auto verdict = seen();
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_EQ(verdict.values.at("held_back_percent"), 0);
  ASSERT_EQ(ran_.size(), 2u);
  EXPECT_EQ(ran_[0].args, (std::vector<std::string>{"metric", "--json"}))
      << "the option for this part alone has changed its name";
}

TEST_F(AmdThrottle, eachReasonOfHeatOrBoardIsNamed) {
  const std::pair<const char*, const char*> reasons[] = {{"prochot", "PROCHOT"},
                                                         {"socket_thermal", "socket"},
                                                         {"vr_thermal", "voltage regulators"},
                                                         {"hbm_thermal", "HBM"}};
  const auto good = now_;
  for (const auto& [reason, word] : reasons) {
    now_ = good;
    now_[1]["throttle"][fmt::format("{}_accumulated", reason)] = 7;
    EXPECT_THAT(seen().text, AllOf(HasSubstr("GPU 1"), HasSubstr(word), HasSubstr("7 times"),
                                   Not(HasSubstr("GPU 0"))));
    EXPECT_EQ(seen().status, CheckStatus::Fail);
    now_ = good;
    now_[0]["throttle"][fmt::format("{}_violation_status", reason)] = "ACTIVE";
    EXPECT_THAT(seen().text, AllOf(HasSubstr("GPU 0"), HasSubstr(word), HasSubstr("now")));
    EXPECT_EQ(seen().status, CheckStatus::Fail);
  }
}

TEST_F(AmdThrottle, whatWasBeforeIsAShareAndACounterThatWentBackIsAReset) {
  for (auto* gpus : {&then_, &now_}) (*gpus)[0]["throttle"]["hbm_thermal_accumulated"] = 12264151;
  auto verdict = seen();
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_NEAR(verdict.values.at("held_back_percent"), 1, 0.01);
  now_[0]["throttle"]["hbm_thermal_accumulated"] = 3;
  verdict = seen();
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text, HasSubstr("reset"));
}

TEST_F(AmdThrottle, formsOfOtherReleasesAreReadToo) {
  wrapped_ = true;  // ROCm 7
  EXPECT_EQ(seen().status, CheckStatus::Pass);
  for (auto* gpus : {&then_, &now_})
    for (auto& gpu : *gpus) gpu["throttle"] = throttleOf("active");  // before 6.4
  EXPECT_EQ(seen().status, CheckStatus::Pass);
  now_[0]["throttle"]["vr_thermal_violation_active"] = "ACTIVE";
  EXPECT_EQ(seen().status, CheckStatus::Fail);
}

/// MI200 tells that it is held back, and not by what.
TEST_F(AmdThrottle, gpusWithoutReasonsAreTakenByTheirWord) {
  for (auto* gpus : {&then_, &now_})
    for (auto& gpu : *gpus) {
      for (auto& [key, value] : gpu["throttle"].items()) value = "N/A";
      gpu["power"]["throttle_status"] = "UNTHROTTLED";
    }
  EXPECT_EQ(seen().status, CheckStatus::Pass) << seen().text;
  now_[1]["power"]["throttle_status"] = "THROTTLED";
  EXPECT_EQ(seen().status, CheckStatus::Fail);
  now_[1]["power"]["throttle_status"] = "N/A";
  EXPECT_EQ(seen().status, CheckStatus::NoData) << "nothing is said of GPU 1";
  now_[1].erase("throttle"), now_[1].erase("power");
  EXPECT_EQ(seen().status, CheckStatus::NoData);
}

TEST_F(AmdThrottle, whatIsNotUnderstoodIsNoPass) {
  const auto good = now_;
  const auto with = [&](auto change) {
    now_ = good;
    change(now_);
    return seen().status;
  };
  EXPECT_EQ(seen({{"gpus", 8}}).status, CheckStatus::NoData) << "six GPUs are missing";
  EXPECT_EQ(with([](json& gpus) { gpus.erase(1); }), CheckStatus::NoData);
  EXPECT_EQ(with([](json& gpus) { gpus[1]["gpu"] = 0; }), CheckStatus::NoData);
  EXPECT_EQ(with([](json& gpus) { gpus[1]["gpu"] = 5; }), CheckStatus::NoData);
  EXPECT_EQ(with([](json& gpus) { gpus[1]["throttle"]["prochot_violation_status"] = "MAYBE"; }),
            CheckStatus::NoData);
  EXPECT_EQ(with([](json& gpus) { gpus[1]["throttle"]["prochot_accumulated"] = "many"; }),
            CheckStatus::NoData);
  EXPECT_EQ(with([](json& gpus) { gpus[1]["throttle"]["prochot_accumulated"] = -1; }),
            CheckStatus::NoData);
  EXPECT_EQ(with([](json& gpus) { gpus = "no GPU"; }), CheckStatus::NoData);
  host_.run = [](const io::Command&) -> Result<io::ProcessExit> {
    return io::ProcessExit{2, "", "amdsmi_cli_exceptions: driver not loaded"};
  };
  EXPECT_EQ(seen().status, CheckStatus::NoData);
  EXPECT_THAT(seen().text, HasSubstr("driver not loaded"));
}

}  // namespace
}  // namespace muster::validate
