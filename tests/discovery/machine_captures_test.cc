// SPDX-License-Identifier: Apache-2.0
// The survey against captures of real BMCs, replayed path by path; they are not part of this
// repository (tests/bmc/redfish/redfish_bmc_captures_test.cc). Nothing of what they contain is
// printed.
#include "base/io/process.h"
#include "bmc/redfish/json_view.h"
#include "discovery/machine.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::discovery {
namespace {

struct Capture {
  const char* name;
  std::size_t gpus;
  bool bmc_macs;
};

class DiscoverCaptures : public ::testing::TestWithParam<Capture> {};

TEST_P(DiscoverCaptures, aRealMachineIsSurveyed) {
  const char* named = std::getenv("MUSTER_REDFISH_CAPTURES");
  const auto folder = named && *named
                          ? std::filesystem::path(named)
                          : test::sourceFolder().parent_path() / "shared/captures/redfish";
  const auto file = folder / (std::string(GetParam().name) + ".json.gz");
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no capture " << file.filename()
                 << "; set MUSTER_REDFISH_CAPTURES to their folder";
  io::Command unpack;
  unpack.program = "gzip";
  unpack.args = {"-dc", file.string()};
  auto text = io::runChecked(unpack);
  ASSERT_TRUE(text);
  const auto resources = bmc::parseLenient(*text);
  test::VirtualLoop loop;
  test::FakeHttp net;
  net.handle = [&](io::HttpRequest request) -> Async<io::HttpResponse> {
    auto path = request.url.target;
    if (request.method == "POST")
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    if (path.size() > 1 && path.back() == '/') path.pop_back();
    const auto found = resources.find(path);
    co_return found == resources.end() ? test::FakeHttp::json(404, "{}")
                                       : test::FakeHttp::json(200, found->dump());
  };
  test::RedfishRig rig(loop, net);
  auto bmc = rig.bmc();
  const auto survey = loop.run(bmc->survey());
  ASSERT_TRUE(survey) << survey.error().str();
  EXPECT_FALSE(survey->system.manufacturer.empty());
  EXPECT_TRUE(isRealSerial(survey->system.serial));
  EXPECT_FALSE(survey->system.macs.empty());
  EXPECT_FALSE(survey->bmc_version.empty());
  EXPECT_EQ(survey->gpus.size(), GetParam().gpus);
  EXPECT_EQ(!survey->bmc_macs.empty(), GetParam().bmc_macs);
  for (const auto& request : net.requests)
    EXPECT_TRUE(request.method == "GET" ||
                request.url.target.find("Sessions") != std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, DiscoverCaptures,
                         ::testing::Values(Capture{"dell", 1, true}, Capture{"hpe", 0, true},
                                           Capture{"supermicro", 8, true},
                                           Capture{"nvidia_viking", 8, true}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::discovery
