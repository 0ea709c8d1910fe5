// SPDX-License-Identifier: Apache-2.0
// What is rendered for SONiC, evaluated by SONiC's own files: its YANG models (yanglint of libyang)
// and its template of QoS (jinja2). MUSTER_SONIC_BUILDIMAGE names a checkout of
// github.com/sonic-net/sonic-buildimage; without it, and without the tools, these are skipped.
// tests/fabric/roce/roce_test.cc holds the facts that are taken from there.
#include "base/io/files.h"
#include "base/io/process.h"
#include "fabric/roce/roce.h"
#include "tests/fabric/roce/nvidia_roce.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

namespace muster::fabric::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kPython = "/usr/bin/python3";  // Debian's own, which knows Debian's jinja2

class SonicModels : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("MUSTER_SONIC_BUILDIMAGE");
    if (!named || !*named)
      GTEST_SKIP() << "MUSTER_SONIC_BUILDIMAGE names no checkout of sonic-buildimage";
    buildimage_ = named;
    const auto jinja = io::runBlocking({kPython, {"-c", "import jinja2"}}),
               yanglint = io::runBlocking({"yanglint", {"--version"}});
    if (!jinja || jinja->code != 0 || !yanglint || yanglint->code != 0)
      GTEST_SKIP() << "needs python3-jinja2 and libyang2-tools";
  }
  /// What SONiC's files say against it, a line each.
  std::string evaluated(const json& fragment, const std::string& asic) const {
    const auto file = folder_ / "fragment.json";
    EXPECT_TRUE(io::writeFileAtomic(file, fragment.dump()));
    const auto ran = io::runBlocking(
        {kPython,
         {(muster::test::sourceFolder() / "tests/fabric/roce/sonic_models.py").string(),
          buildimage_, file.string(), asic}});
    EXPECT_TRUE(ran);
    EXPECT_EQ(ran->err, "");
    return ran->out == "\n" ? "" : ran->out;
  }
  static json rendered(SonicAsic asic) {
    return json::parse(roceSonic(kNvidiaRoce, {"Ethernet0", "Ethernet8"}, asic));
  }
  std::string buildimage_;
  muster::test::TempFolder folder_;
};

TEST_F(SonicModels, takesWhatIsRenderedForEachFamily) {
  EXPECT_EQ(evaluated(rendered(SonicAsic::Mellanox), "mellanox"), "");
  EXPECT_EQ(evaluated(rendered(SonicAsic::Barefoot), "barefoot"), "");
  for (const char* other : {"broadcom", "cisco-8000", "marvell-teralynx"})
    EXPECT_EQ(evaluated(rendered(SonicAsic::Other), other), "") << other;
}

/// The evaluation itself: what is wrong is found.
TEST_F(SonicModels, findsWhatIsWrong) {
  EXPECT_THAT(evaluated(rendered(SonicAsic::Other), "mellanox"),
              HasSubstr("SONiC's template has PFC_PRIORITY_TO_PRIORITY_GROUP_MAP for mellanox"));
  EXPECT_THAT(evaluated(rendered(SonicAsic::Mellanox), "broadcom"),
              HasSubstr("SONiC's template has none for broadcom"));
  const auto with = [](const char* pointer, const json& value) {
    auto fragment = rendered(SonicAsic::Mellanox);
    fragment[json::json_pointer(pointer)] = value;
    return fragment;
  };
  EXPECT_THAT(evaluated(with("/PORT_QOS_MAP/Ethernet0/pfc_to_pg_map", "NONE"), "mellanox"),
              HasSubstr("Invalid leafref value"));
  EXPECT_THAT(evaluated(with("/WRED_PROFILE/MUSTER_ECN/green_max_threshold", "1"), "mellanox"),
              HasSubstr("must be greater than or equal to min"));
  EXPECT_THAT(evaluated(with("/BUFFER_PG/Ethernet0|9/profile", "NULL"), "mellanox"),
              HasSubstr("Invalid Buffer PG number"));
  EXPECT_THAT(evaluated(with("/PORT/Ethernet0/mtu", 9000), "mellanox"), HasSubstr("is no text"));
}

}  // namespace
}  // namespace muster::fabric::test
