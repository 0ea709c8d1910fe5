// SPDX-License-Identifier: Apache-2.0
// The description, held against a validator of other people, and metrics by promtool.
#include "tests/api/api_site.h"

#include <cstdlib>

namespace muster::api {
namespace {

using ::testing::HasSubstr;

class ApiDescription : public ApiSite {};

/// docs/development/outside-tools.md says where the validator comes from.
TEST_F(ApiDescription, isOpenApi31) {
  start();
  const auto said = ask({.target = "/openapi.json", .over_https = false});
  ASSERT_EQ(said.status, 200);
  EXPECT_EQ(said.json["openapi"], "3.1.0");
  site_.write("openapi.json", said.body);
  const char* python = std::getenv("MUSTER_OPENAPI_PYTHON");
  const std::string program = python ? python : "python3";
  const auto there = io::runBlocking({program, {"-c", "import openapi_spec_validator"}});
  if (!there || there->code != 0)
    GTEST_SKIP() << "no openapi-spec-validator; MUSTER_OPENAPI_PYTHON names a Python that has it";
  const auto checked = io::runBlocking(
      {program, {"-m", "openapi_spec_validator", (site_ / "openapi.json").string()}});
  ASSERT_TRUE(checked) << checked.error().str();
  EXPECT_EQ(checked->code, 0) << checked->out << checked->err;
}

TEST_F(ApiDescription, namesEveryOperationOnce) {
  start();
  const auto said = ask({.target = "/openapi.json"});
  std::set<std::string> ids;
  for (const auto& [path, methods] : said.json["paths"].items())
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(ids.insert(operation["operationId"]).second) << operation["operationId"];
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path;
    }
  EXPECT_GT(ids.size(), 40u);
  EXPECT_TRUE(ids.contains("postSession"));
  EXPECT_TRUE(ids.contains("deleteSession"));
}

TEST_F(ApiDescription, metricsAreWhatPrometheusReads) {
  start();
  ask({.target = "/api/v1/nodes"});
  const auto said = ask({.target = "/metrics"});
  EXPECT_THAT(said.body, HasSubstr("muster_nodes{state="));
  EXPECT_THAT(said.body,
              HasSubstr("muster_api_requests_total{route=\"GET /nodes\",status=\"200\"} 1\n"));
  io::Command command{"promtool", {"check", "metrics"}};
  command.stdin_text = said.body;
  const auto checked = io::runBlocking(command);
  ASSERT_TRUE(checked) << checked.error().str();
  EXPECT_EQ(checked->code, 0) << checked->out << checked->err;
  EXPECT_EQ(checked->err, "");
}

}  // namespace
}  // namespace muster::api
