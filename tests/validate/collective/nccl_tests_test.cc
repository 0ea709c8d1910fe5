// SPDX-License-Identifier: Apache-2.0
// What other testers print, read fail-closed. Each case is a mistake that some tool makes: NaN
// passes, skipped passes, exit 0 on a fault, numbers of another unit, output that was cut off.
#include "validate/collective/nccl_tests.h"
#include "validate/collective/dcgm.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::collective {
namespace {

using nlohmann::json;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Shaped as nccl-tests 2.13 prints it; the numbers are ours.
const std::string kText =
    R"(# nThread 1 nGpus 8 minBytes 536870912 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1000 on       host device  0 [0000:1a:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   536870912     134217728     float     sum      -1   2073.0  258.98  453.22      0   2071.5  259.17  453.55      0
  1073741824     268435456     float     sum      -1   4063.6  264.23  462.41      0   4060.2  264.46  462.80      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 457.995
#
)";

TEST(NcclTests, readsBothPlacements) {
  const auto test = parseNcclTests(kText);
  ASSERT_TRUE(test) << test.error().str();
  ASSERT_EQ(test->rows.size(), 2u);
  EXPECT_EQ(test->rows[1].bytes, 1073741824u);
  EXPECT_DOUBLE_EQ(test->rows[1].in_place.busbw_gbytes_per_s, 462.80);
  EXPECT_DOUBLE_EQ(test->bestBusbw(), 462.41) << "the slower of both at the largest size";
  EXPECT_TRUE(test->checked);
  EXPECT_EQ(test->out_of_bounds, 0);
}

TEST(NcclTests, wrongValuesAreCounted) {
  EXPECT_EQ(
      parseNcclTests(replaced(kText, "462.41      0", "462.41      7"))->rows[1].out_of_place.wrong,
      7);
  EXPECT_EQ(parseNcclTests(replaced(kText, ": 0 OK", ": 3 FAILED"))->out_of_bounds, 3);
  EXPECT_EQ(parseNcclTests(replaced(kText, ": 0 OK", ": 0 FAILED"))->out_of_bounds, 1)
      << "the word counts too";
}

TEST(NcclTests, uncheckedDataIsNotChecked) {
  EXPECT_FALSE(parseNcclTests(replaced(kText, "462.41      0", "462.41    N/A"))->checked);
}

TEST(NcclTests, whatIsNoNumberIsCorrupt) {
  for (const char* bad : {"nan", "-nan", "inf", "0.00", "-1.0", "1e999", "fast"})
    EXPECT_FALSE(parseNcclTests(replaced(kText, "462.41", bad))) << bad;
  EXPECT_FALSE(parseNcclTests(replaced(kText, ": 457.995", ": nan")));
  EXPECT_FALSE(parseNcclTests(replaced(kText, ": 457.995", ": 0")));
}

TEST(NcclTests, anotherUnitIsRefused) {
  EXPECT_FALSE(
      parseNcclTests(replaced(kText, "(us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
                              "(us)  (Gb/s)  (Gb/s)            (us)  (Gb/s)  (Gb/s)")));
  const auto bits = parseNcclTests(replaced(kText, "4063.6  264.23", "4063.6  2113.8"));
  ASSERT_FALSE(bits);
  EXPECT_NE(bits.error().str().find("another unit"), std::string::npos) << bits.error().str();
}

TEST(NcclTests, cutOffOutputIsNoResult) {
  for (std::size_t length = 0; length < kText.find(": 457.9"); length += 7)
    EXPECT_FALSE(parseNcclTests(kText.substr(0, length))) << length;
  EXPECT_FALSE(parseNcclTests("NCCL WARN unhandled cuda error\n"));
  EXPECT_FALSE(parseNcclTests(replaced(kText, "     -1   4063.6", "   4063.6")))
      << "a row of another shape";
}

json ncclJson() {
  const json half{{"time", 4063.6}, {"alg_bw", 264.23}, {"bus_bw", 462.41}, {"nwrong", 0}};
  return {{"results",
           {{{"size", 1073741824u},
             {"count", 268435456u},
             {"out_of_place", half},
             {"in_place", half}}}},
          {"out_of_bounds", {{"count", 0}, {"okay", true}}},
          {"average_bus_bandwidth", {{"bandwidth", 462.41}, {"okay", true}}}};
}

TEST(NcclTests, readsItsJsonTheSameWay) {
  EXPECT_DOUBLE_EQ(parseNcclTests(ncclJson().dump())->bestBusbw(), 462.41);
  auto wrong = ncclJson();
  wrong["results"][0]["in_place"]["nwrong"] = 2;
  EXPECT_EQ(parseNcclTests(wrong.dump())->rows[0].in_place.wrong, 2);
  wrong["results"][0]["in_place"]["nwrong"] = "N/A";
  EXPECT_FALSE(parseNcclTests(wrong.dump())->checked);
  for (const char* key : {"results", "out_of_bounds", "average_bus_bandwidth"}) {
    auto lacking = ncclJson();
    lacking.erase(key);
    EXPECT_FALSE(parseNcclTests(lacking.dump())) << key;
  }
  auto null = ncclJson();
  null["results"][0]["out_of_place"]["bus_bw"] = nullptr;
  EXPECT_FALSE(parseNcclTests(null.dump())) << "JSON writes NaN as null";
  EXPECT_FALSE(parseNcclTests(ncclJson().dump().substr(0, 60)));
}

json dcgmResult(const std::string& status) {
  return {{"entity_group", "GPU"}, {"entity_id", 0}, {"status", status}};
}
json dcgm(json results, const std::string& summary = "Pass") {
  // Arrays of one element are named: braces around one JSON value are a copy to one compiler and an
  // array to another.
  const json test{
      {"name", "memory"}, {"results", std::move(results)}, {"test_summary", {{"status", summary}}}};
  const json category{{"category", "Hardware"}, {"tests", json::array({test})}};
  const json gpu{{"entity_id", 0}, {"serial_num", "S0"}, {"device_id", "2330"}};
  const json group{{"entity_group", "GPU"}, {"entities", json::array({gpu})}};
  return {{"DCGM Diagnostic", {{"test_categories", json::array({category})}}},
          {"entity_groups", json::array({group})},
          {"metadata", {{"version", "4.2.0"}, {"Driver Version Detected", "570.1"}}}};
}

TEST(Dcgm, aPassIsAPass) {
  const auto report = parseDcgmDiag(dcgm(json::array({dcgmResult("Pass")})).dump());
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(report->good());
  EXPECT_EQ(report->driver, "570.1");
}

TEST(Dcgm, everyOtherWordIsNone) {
  for (const char* status : {"Fail", "Skip", "Warn", "Not Run", ""})
    EXPECT_FALSE(
        parseDcgmDiag(dcgm(json::array({dcgmResult("Pass"), dcgmResult(status)})).dump())->good())
        << status;
  EXPECT_FALSE(parseDcgmDiag(dcgm(json::array()).dump())->good()) << "a test without results";
  EXPECT_FALSE(parseDcgmDiag(dcgm(json::array({dcgmResult("Pass")}), "Skip").dump())->good())
      << "skipped as a whole";
  EXPECT_FALSE(
      parseDcgmDiag(dcgm(json::array({json{{"entity_group", "GPU"}, {"entity_id", 0}}})).dump())
          ->good())
      << "no status";
}

TEST(Dcgm, warningsComeWithEntitySerialAndAction) {
  auto result = dcgmResult("Fail");
  result["warnings"] = json::array({json{{"warning", "row remap pending"},
                                         {"error_id", 85},
                                         {"error_category", 4},
                                         {"error_severity", 6}}});
  const auto report = parseDcgmDiag(dcgm(json::array({result})).dump());
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(report->findings[0].entity, "GPU 0");
  EXPECT_EQ(report->findings[0].serial, "S0");
  EXPECT_EQ(report->findings[0].error_id, 85);
  EXPECT_EQ(report->findings[0].action(), "reset the GPU");
  auto hidden = dcgmResult("Pass");
  hidden["warnings"] = result["warnings"];
  EXPECT_FALSE(parseDcgmDiag(dcgm(json::array({hidden})).dump())->good())
      << "a pass with a warning is not clean";
}

TEST(Dcgm, anotherShapeIsCorrupt) {
  for (const char* text :
       {"", "{}", "Error: unable to connect to hostengine", R"({"DCGM Diagnostic":{}})",
        R"({"DCGM Diagnostic":{"test_categories":[{"tests":[7]}]}})", R"({"DCGM Diagnostic":[]})"})
    EXPECT_FALSE(parseDcgmDiag(text)) << text;
  EXPECT_TRUE(
      parseDcgmDiag("Warning: a line before\n" + dcgm(json::array({dcgmResult("Pass")})).dump())
          ->good());
}

}  // namespace
}  // namespace muster::collective
