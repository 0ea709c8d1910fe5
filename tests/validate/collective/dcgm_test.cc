// SPDX-License-Identifier: Apache-2.0
// What dcgmi diag prints, of each release, read fail-closed. The forms are those of public outputs,
// named beside each; the numbers of GPUs and the faults are ours.
#include "validate/collective/dcgm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::collective {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Names = std::vector<std::string>;

const Names kLevel3{"software",         "memory",         "diagnostic",     "pcie",
                    "memory_bandwidth", "targeted_power", "targeted_stress"};

/// DCGM 4. Form: testing/python3/dcgm_diag_schema.json of DCGM 4.6, and NVIDIA/DCGM issue 253.
json dcgm4(int gpus, const Names& tests) {
  json list = json::array(), entities = json::array();
  for (int gpu = 0; gpu < gpus; ++gpu)
    entities.push_back(
        {{"entity_id", gpu}, {"serial_num", fmt::format("S{}", gpu)}, {"device_id", "2330"}});
  for (const auto& name : tests) {
    json results = json::array();
    for (int gpu = 0; gpu < gpus; ++gpu)
      results.push_back({{"entity_group", "GPU"},
                         {"entity_group_id", 1},
                         {"entity_id", gpu},
                         {"status", "Pass"}});
    list.push_back({{"name", name}, {"results", results}, {"test_summary", {{"status", "Pass"}}}});
  }
  const json category{{"category", "Hardware"}, {"tests", list}};
  const json group{{"entity_group", "GPU"}, {"entity_group_id", 1}, {"entities", entities}};
  return {{"DCGM Diagnostic", {{"test_categories", json::array({category})}}},
          {"entity_groups", json::array({group})},
          {"metadata", {{"version", "4.4.2"}, {"Driver Version Detected", "570.148.08"}}}};
}
json& testAt(json& report, std::size_t test) {
  return report["DCGM Diagnostic"]["test_categories"][0]["tests"][test];
}

/// DCGM 3. Form: microsoft/VirtualClient, unit tests' Examples/DCGMI; NVIDIA/DCGM issue 139.
json dcgm3(int gpus, const Names& of_gpus) {
  json deployment = json::array(), hardware = json::array();
  for (const char* name : {"Denylist", "NVML Library", "CUDA Main Library",
                           "Permissions and OS Blocks", "Persistence Mode", "Environment Variables",
                           "Page Retirement/Row Remap", "Graphics Processes", "Inforom"})
    deployment.push_back({{"name", name}, {"results", json::array({json{{"status", "Pass"}}})}});
  for (const auto& name : of_gpus) {
    json results = json::array();
    for (int gpu = 0; gpu < gpus; ++gpu)
      results.push_back({{"gpu_id", std::to_string(gpu)}, {"status", "Pass"}});
    hardware.push_back({{"name", name}, {"results", results}});
  }
  const json first{{"category", "Deployment"}, {"tests", deployment}},
      second{{"category", "Hardware"}, {"tests", hardware}};
  return {{"DCGM GPU Diagnostic",
           {{"test_categories", json::array({first, second})},
            {"version", "3.3.9"},
            {"Driver Version Detected", "560.35.03"},
            {"GPU Device IDs", std::vector<std::string>(static_cast<std::size_t>(gpus), "2330")},
            {"GPU Device Serials", {{"0", "1650"}}}}}};
}
json& testOf3(json& report, std::size_t category, std::size_t test) {
  return report["DCGM GPU Diagnostic"]["test_categories"][category]["tests"][test];
}

Names wrongOf(const std::string& text, int level, std::size_t gpus = 8,
              std::set<std::string> may_skip = {}) {
  const auto report = parseDcgmDiag(text);
  if (!report) return {report.error().str()};
  return shortcomings(*report, {level, gpus, std::move(may_skip)});
}
std::string joined(const Names& texts) {
  std::string all;
  for (const auto& text : texts) all += text + "\n";
  return all;
}

TEST(Dcgm, eachGpuMustHavePassedEachTestOfItsLevel) {
  EXPECT_THAT(wrongOf(dcgm4(8, kLevel3).dump(), 3), IsEmpty());
  EXPECT_THAT(joined(wrongOf(dcgm4(8, kLevel3).dump(), 4)),
              HasSubstr("memtest on no GPU; pulse_test on no GPU"));
  for (std::size_t test = 0; test < kLevel3.size(); ++test) {
    auto names = kLevel3;
    names.erase(names.begin() + static_cast<long>(test));
    EXPECT_THAT(joined(wrongOf(dcgm4(8, names).dump(), 3)), HasSubstr(kLevel3[test]));
    auto without_one = dcgm4(8, kLevel3);
    testAt(without_one, test)["results"].erase(5);
    EXPECT_THAT(joined(wrongOf(without_one.dump(), 3)), HasSubstr(kLevel3[test] + " on GPU 5"));
  }
}

TEST(Dcgm, aLevelThatRanOnlyItsDeploymentTestsHasNotPassed) {
  EXPECT_THAT(joined(wrongOf(dcgm4(8, {"software"}).dump(), 3)),
              HasSubstr("memory on no GPU; pcie on no GPU"));
  EXPECT_THAT(wrongOf(dcgm4(8, {"software"}).dump(), 1), IsEmpty());
  EXPECT_THAT(joined(wrongOf(dcgm3(8, {}).dump(), 3)), HasSubstr("targeted_stress on no GPU"));
}

TEST(Dcgm, aGpuThatTheReportDoesNotNameIsMissed) {
  EXPECT_THAT(joined(wrongOf(dcgm4(7, kLevel3).dump(), 3)), HasSubstr("names 7 of 8 GPUs"));
  EXPECT_THAT(joined(wrongOf(dcgm3(7, {"PCIe", "GPU Memory"}).dump(), 2)),
              HasSubstr("names 7 of 8 GPUs"));
  EXPECT_THAT(joined(wrongOf(dcgm4(8, kLevel3).dump(), 3, 0)), HasSubstr("of 0 GPUs"));
}

TEST(Dcgm, aRuntimeErrorBesidePassesIsNoPass) {
  for (auto report : {dcgm4(8, kLevel3), dcgm3(8, {"PCIe", "GPU Memory"})}) {
    report.front()["runtime_error"] = "the host engine died";  // the diagnostic's own object
    if (report.contains("DCGM Diagnostic"))
      report["DCGM Diagnostic"]["runtime_error"] = "the host engine died";
    EXPECT_THAT(joined(wrongOf(report.dump(), 2)), HasSubstr("host engine died"));
  }
  auto outside = dcgm4(8, kLevel3);
  outside["runtime_error"] = "killed";
  EXPECT_THAT(joined(wrongOf(outside.dump(), 3)), HasSubstr("killed"));
  // Alone: dcgmi/Diag.cpp writes this when it could not run.
  const json alone{
      {"DCGM Diagnostic", {{"version", "4.4.2"}, {"runtime_error", "no host engine"}}}};
  const auto none = parseDcgmDiag(alone.dump());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(none.error().str(), HasSubstr("no host engine"));
}

TEST(Dcgm, whateverIsCalledAnErrorIsNoPass) {
  const auto good = dcgm4(8, kLevel3);
  for (const json& error : {json("nvvs crashed"), json({"one"}), json(5), json(true)})
    for (const char* key : {"error", "errors", "Error", "error_id"}) {
      auto root = good, diagnostic = good, result = good;
      root[key] = error;
      diagnostic["DCGM Diagnostic"][key] = error;
      testAt(result, 0)["results"][3][key] = error;
      for (const auto& each : {root, diagnostic, result})
        EXPECT_THAT(wrongOf(each.dump(), 3), Not(IsEmpty())) << key << " " << error;
    }
  for (const json& silent : {json(""), json(nullptr), json(0), json::array(), json(false)}) {
    auto root = good;
    root["errors"] = silent;
    EXPECT_THAT(wrongOf(root.dump(), 3), IsEmpty()) << silent;
  }
  auto warned = good;
  warned["DCGM Diagnostic"]["warnings"] = {"x"};
  EXPECT_THAT(wrongOf(warned.dump(), 3), Not(IsEmpty()));
}

TEST(Dcgm, aStatusThatIsThereTwiceIsNone) {
  auto text = dcgm4(8, kLevel3).dump();
  const std::string pass = "\"status\":\"Pass\"";
  text.replace(text.find(pass), pass.size(), "\"status\":\"Fail\"," + pass);
  EXPECT_FALSE(parseDcgmDiag(text));
}

TEST(Dcgm, everyOtherWordIsNone) {
  for (const char* status : {"Fail", "Skip", "Warn", "Not Run", "", "passed"}) {
    auto four = dcgm4(8, kLevel3);
    testAt(four, 1)["results"][2]["status"] = status;
    EXPECT_THAT(joined(wrongOf(four.dump(), 3)), HasSubstr("GPU 2")) << status;
    auto summary = dcgm4(8, kLevel3);
    testAt(summary, 1)["test_summary"]["status"] = status;
    EXPECT_THAT(joined(wrongOf(summary.dump(), 3)), HasSubstr("as a whole")) << status;
    auto three = dcgm3(8, {"PCIe", "GPU Memory"});
    testOf3(three, 0, 4)["results"][0]["status"] = status;
    EXPECT_THAT(joined(wrongOf(three.dump(), 2)), HasSubstr("Persistence Mode")) << status;
  }
}

/// The extended diagnostic is another package: in most outputs of level 3 it is "Skip - All".
TEST(Dcgm, optionalTestsMayBeSkippedAndNothingElse) {
  auto names = kLevel3;
  names.push_back("eud");
  auto report = dcgm4(8, names);
  for (auto& result : testAt(report, 7)["results"]) result["status"] = "Skip";
  testAt(report, 7)["test_summary"]["status"] = "Skip";
  EXPECT_THAT(wrongOf(report.dump(), 3), IsEmpty());
  EXPECT_TRUE(parseDcgmDiag(report.dump())->skipped.contains("eud"));
  testAt(report, 7)["results"][0]["status"] = "Fail";
  EXPECT_THAT(joined(wrongOf(report.dump(), 3)), HasSubstr("eud on GPU 0"));
  auto bandwidth = dcgm4(8, kLevel3);
  for (auto& result : testAt(bandwidth, 4)["results"]) result["status"] = "Skip";
  testAt(bandwidth, 4)["test_summary"]["status"] = "Skip";
  EXPECT_FALSE(wrongOf(bandwidth.dump(), 3).empty());
  EXPECT_THAT(wrongOf(bandwidth.dump(), 3, 8, {"memory_bandwidth"}), IsEmpty())
      << "the site says that its GPUs cannot";
  for (auto& result : testAt(bandwidth, 4)["results"]) result["status"] = "Fail";
  EXPECT_FALSE(wrongOf(bandwidth.dump(), 3, 8, {"memory_bandwidth"}).empty())
      << "may be skipped is not may fail";
}

TEST(Dcgm, readsDcgm3) {
  const auto text = dcgm3(8, {"PCIe", "GPU Memory", "Diagnostic", "Targeted Stress",
                              "Targeted Power", "Memory Bandwidth", "Memtest", "Pulse Test"})
                        .dump();
  EXPECT_THAT(wrongOf(text, 4), IsEmpty());
  const auto report = parseDcgmDiag(text);
  EXPECT_EQ(report->version, "3.3.9");
  EXPECT_EQ(report->driver, "560.35.03");
  // The same of one result that names all GPUs, as the validation suite itself writes it.
  auto suite = dcgm3(8, {"PCIe", "GPU Memory"});
  for (std::size_t test : {0u, 1u})
    testOf3(suite, 1, test)["results"] =
        json::array({json{{"gpu_ids", "0,1,2,3,4,5,6,7"}, {"status", "PASS"}}});
  suite["DCGM GPU Diagnostic"]["test_categories"][1]["tests"].push_back(nullptr);
  EXPECT_THAT(wrongOf("WARNING: a line before\n" + suite.dump(), 2), IsEmpty());
}

TEST(Dcgm, aReportThatNamesNoGpuProvesNothing) {
  auto report = dcgm3(8, {});  // level 1 of DCGM 2 has no list of device ids
  report["DCGM GPU Diagnostic"].erase("GPU Device IDs");
  EXPECT_THAT(joined(wrongOf(report.dump(), 1)), HasSubstr("names 0 of 8 GPUs"));
}

TEST(Dcgm, warningsComeWithEntitySerialAndAction) {
  auto report = dcgm4(2, kLevel3);
  const json warnings = json::array({json{{"warning", "row remap pending"},
                                          {"error_id", 85},
                                          {"error_category", 4},
                                          {"error_severity", 6}}});
  testAt(report, 1)["results"][1]["status"] = "Fail";
  testAt(report, 1)["results"][1]["warnings"] = warnings;
  const auto read = parseDcgmDiag(report.dump());
  ASSERT_EQ(read->findings.size(), 1u);
  EXPECT_EQ(read->findings[0].entity, "GPU 1");
  EXPECT_EQ(read->findings[0].serial, "S1");
  EXPECT_EQ(read->findings[0].error_id, 85);
  EXPECT_EQ(read->findings[0].action(), "reset the GPU");
  auto without = report;  // what DCGM says of parts that tell none
  without["entity_groups"][0]["entities"][1]["serial_num"] = "<<<NOT_SUPPORTED>>>";
  EXPECT_EQ(parseDcgmDiag(without.dump())->findings.at(0).serial, "");
  // NVIDIA/DCGM issue 284: a memory test that could not allocate passes, with a warning.
  testAt(report, 1)["results"][1]["status"] = "Pass";
  EXPECT_THAT(joined(wrongOf(report.dump(), 3, 2)), HasSubstr("row remap pending"));
  auto three = dcgm3(1, {"PCIe", "GPU Memory"});
  for (const json& shape :
       {json("thermal"), json::array({"thermal"}), json{{"warning", "thermal"}}}) {
    testOf3(three, 1, 1)["results"][0] = {{"gpu_id", "0"}, {"status", "Fail"}, {"warnings", shape}};
    EXPECT_THAT(joined(wrongOf(three.dump(), 2, 1)), HasSubstr("thermal")) << shape.dump();
  }
}

TEST(Dcgm, ofIterationsEachCounts) {
  auto second = dcgm4(8, kLevel3);
  json runs{{"iterations", json::array({dcgm4(8, kLevel3), second})}, {"Overall Result", "Pass"}};
  EXPECT_THAT(wrongOf(runs.dump(), 3), IsEmpty());
  testAt(runs["iterations"][1], 3)["results"][7]["status"] = "Fail";
  EXPECT_THAT(joined(wrongOf(runs.dump(), 3)), HasSubstr("GPU 7"));
  runs["iterations"][1] = second;
  runs["Overall Result"] = "Fail";
  EXPECT_FALSE(wrongOf(runs.dump(), 3).empty());
}

TEST(Dcgm, anotherShapeIsCorrupt) {
  for (const char* text :
       {"", "{}", "Error: unable to connect to hostengine", R"({"DCGM Diagnostic":{}})",
        R"({"DCGM Diagnostic":{"test_categories":[{"tests":[7]}]}})", R"({"DCGM Diagnostic":[]})",
        R"({"iterations":[]})", R"({"iterations":[7]})", R"({"DCGM GPU Diagnostic":{"tests":[]}})",
        R"({"DCGM Diagnostic":{"test_categories":[{"tests":[{"name":"x","results":7}]}]}})"})
    EXPECT_FALSE(parseDcgmDiag(text)) << text;
}

/// A table as dcgmi prints it without -j. Form of 4: NVIDIA/DCGM issue 253 and DCGM's user guide;
/// of 3: issue 55, stas00/ml-engineering.
std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text =
      "Successfully ran diagnostic for group.\n"
      "+---------------------------+------------------------------------------------+\n"
      "| Diagnostic                | Result                                         |\n"
      "+===========================+================================================+\n";
  for (const auto& [name, value] : rows)
    text += value.empty() ? fmt::format("|-----  {:-<20}+{:-<48}|\n", name + "  ", "")
                          : fmt::format("| {:<26}| {:<47}|\n", name, value);
  return text + "+---------------------------+------------------------------------------------+\n";
}

TEST(DcgmTable, readsThatOfDcgm4) {
  std::vector<std::pair<std::string, std::string>> rows{{"Metadata", ""},
                                                        {"DCGM Version", "4.2.3"},
                                                        {"Driver Version Detected", "570.148.08"},
                                                        {"GPU Device IDs Detected", "26b9, 26b9"},
                                                        {"Deployment", ""}};
  for (const char* name : {"software", "memory", "pcie"}) {
    rows.emplace_back(name, "Pass");
    for (int gpu = 0; gpu < 2; ++gpu) rows.emplace_back("", fmt::format("GPU{}: Pass", gpu));
  }
  EXPECT_THAT(wrongOf(table(rows), 2, 2), IsEmpty());
  EXPECT_THAT(joined(wrongOf(table(rows), 2, 3)), HasSubstr("names 2 of 3 GPUs"));
  EXPECT_EQ(parseDcgmDiag(table(rows))->version, "4.2.3");
  auto skipped = rows;
  skipped[10].second = "GPU1: Skip";
  EXPECT_THAT(joined(wrongOf(table(skipped), 2, 2)), HasSubstr("memory on GPU 1"));
  auto missing = rows;
  missing.erase(missing.begin() + 10);
  EXPECT_THAT(joined(wrongOf(table(missing), 2, 2)), HasSubstr("memory on GPU 1"));
  auto warned = rows;
  warned.insert(warned.begin() + 11, {"Warning", "GPU 1: persistence mode is disab"});
  warned.insert(warned.begin() + 12, {"", "led"});
  EXPECT_THAT(joined(wrongOf(table(warned), 2, 2)), HasSubstr("is disabled"));
}

/// NVIDIA/DCGM issue 253 (4.2.3 on L40S by kubectl exec, 4.4.1 on eight B200 by srun): a child of
/// the PCIe test died, every GPU stands there as passed, and the test as a whole failed.
TEST(DcgmTable, aTestThatFailedAsAWholeIsNoPassOfItsGpus) {
  for (const bool warned_first : {true, false}) {
    std::vector<std::pair<std::string, std::string>> rows{
        {"Metadata", ""},
        {"DCGM Version", "4.4.1"},
        {"Driver Version Detected", "570.172.08"},
        {"GPU Device IDs Detected", "2901, 2901, 2901, 2901, 2901, 2901, 2901, 2901"},
        {"Deployment", ""}};
    for (const std::string name : {"software", "memory", "pcie"}) {
      rows.emplace_back(name, name == "pcie" ? "Fail" : "Pass");
      const auto warn = [&] {
        rows.insert(rows.end(), {{"Warning", "There was an internal error during the test:"},
                                 {"", "'A child process (152) exited with non-zero s"},
                                 {"", "tatus 1' Check DCGM and system logs."}});
      };
      if (name == "pcie" && warned_first) warn();
      for (int gpu = 0; gpu < 8; ++gpu) rows.emplace_back("", fmt::format("GPU{}: Pass", gpu));
      if (name == "pcie" && !warned_first) warn();
    }
    const auto wrong =
        joined(wrongOf("Executing in Pod nvidia-dcgm-abcde on Host 10.0.7.9\n" + table(rows), 2));
    EXPECT_THAT(wrong, HasSubstr("pcie on the node: failed"));
    EXPECT_THAT(wrong, HasSubstr("exited with non-zero status 1"));
    auto open_end = table(rows);  // as the first of the two was pasted
    open_end.erase(open_end.rfind("+-"));
    EXPECT_FALSE(wrongOf(open_end, 2).empty());
  }
}

/// DCGM 4.4.2 of a GPU that it has no parameters for: everything but level 1 is skipped, exit 0.
TEST(DcgmTable, aLevelOfWhichEverythingWasSkippedProvesNothing) {
  std::vector<std::pair<std::string, std::string>> rows{{"Metadata", ""},
                                                        {"DCGM Version", "4.4.2"},
                                                        {"Driver Version Detected", "580.95.05"},
                                                        {"GPU Device IDs Detected", "2e12"},
                                                        {"Deployment", ""},
                                                        {"software", "Pass"},
                                                        {"", "GPU0: Pass"},
                                                        {"Hardware", ""}};
  for (const char* name : {"memory", "diagnostic", "nvbandwidth", "pcie", "memory_bandwidth",
                           "targeted_stress", "targeted_power"}) {
    rows.emplace_back(name, "Skip");
    rows.emplace_back("", "GPU0: Skip");
  }
  const auto wrong = joined(wrongOf(table(rows), 3, 1));
  for (const char* name : {"memory", "diagnostic", "pcie", "targeted_power"})
    EXPECT_THAT(wrong, HasSubstr(name));
}

/// The JSON of a GB10 under DCGM 4.2.3 (exit 226): a finding at the GPU, a word at the test.
TEST(Dcgm, aFindingComesWithWhatTheTestAsAWholeSays) {
  auto report = dcgm4(1, {"software"});
  auto& test = testAt(report, 0);
  test["results"][0]["status"] = "Fail";
  test["results"][0]["warnings"] =
      json::array({{{"error_category", 8},
                    {"error_id", 29},
                    {"error_severity", 5},
                    {"warning", "Persistence Mode: Persistence mode for GPU 0 is disabled."}}});
  test["test_summary"] = {{"info", json::array({"SRAM Threshold checking was skipped."})},
                          {"status", "Fail"}};
  report["entity_groups"][0]["entities"][0]["serial_num"] = "<<<NOT_SUPPORTED>>>";
  const auto read = parseDcgmDiag(report.dump());
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_TRUE(std::ranges::any_of(read->findings,
                                  [](const auto& finding) { return finding.error_id == 29; }));
  EXPECT_THAT(joined(wrongOf(report.dump(), 1, 1)), HasSubstr("is disabled"));
}

TEST(DcgmTable, readsThatOfDcgm3) {
  const std::vector<std::pair<std::string, std::string>> head{
      {"Metadata", ""},
      {"DCGM Version", "3.3.9"},
      {"Driver Version Detected", "560.35.03"},
      {"GPU Device IDs Detected", "2330, 2330, 2330, 2330, 2330, 2330, 2330, 2330"},
      {"Deployment", ""},
      {"Denylist", "Pass"},
      {"NVML Library", "Pass"},
      {"CUDA Main Library", "Pass"},
      {"Permissions and OS Blocks", "Pass"},
      {"Persistence Mode", "Pass"},
      {"Environment Variables", "Pass"},
      {"Page Retirement/Row Remap", "Pass"},
      {"Graphics Processes", "Pass"},
      {"Inforom", "Pass"},
      {"Integration", ""},
      {"PCIe", "Pass - All"},
      {"Info", "GPU 0 GPU to Host bandwidth:  13.14 GB/s, GPU"},
      {"", " 0 Host to GPU bandwidth:  12.37 GB/s"}};
  auto good = head;
  good.insert(good.end(), {{"GPU Memory", "Pass - All"}, {"EUD Test", "Skip - All"}});
  EXPECT_THAT(wrongOf(table(good), 2), IsEmpty());
  EXPECT_THAT(joined(wrongOf(table(good), 2, 4)), HasSubstr("names 8 of 4 GPUs"));
  EXPECT_THAT(joined(wrongOf(table(good), 3)), HasSubstr("diagnostic on no GPU"));
  auto bad = head;
  bad.insert(bad.end(), {{"GPU Memory", "Pass - GPUs: 1, 2, 3, 4, 5, 6, 7"},
                         {"", "Fail - GPU: 0"},
                         {"Warning", "GPU 0 Thermal violations totaling 13.3 second"},
                         {"", "s started at 9.7 seconds"}});
  const auto wrong = joined(wrongOf(table(bad), 2));
  EXPECT_THAT(wrong, HasSubstr("GPU Memory on GPU 0: failed"));
  EXPECT_THAT(wrong, HasSubstr("13.3 seconds started"));
  EXPECT_THAT(wrong, HasSubstr("memory on GPU 0"));
  auto cut = table(good);
  EXPECT_FALSE(wrongOf(cut.substr(0, cut.find("| GPU Memory")), 2).empty());
}

TEST(DcgmTable, whatItCannotReadIsRefused) {
  EXPECT_FALSE(parseDcgmDiag(table({})));
  EXPECT_FALSE(parseDcgmDiag(table({{"PCIe", "Passed with honours"}})));
  EXPECT_FALSE(parseDcgmDiag(table({{"PCIe", "Pass - GPUs: one"}})));
  EXPECT_FALSE(parseDcgmDiag(table({{"", "Pass"}}))) << "of which test?";
  // Not dcgmi's own: a page that was written by hand.
  EXPECT_FALSE(parseDcgmDiag(table({{"GPU Memory", "FAIL - GPU 3: HBM memory test failed"}})));
}

}  // namespace
}  // namespace muster::collective
