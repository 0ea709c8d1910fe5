// SPDX-License-Identifier: Apache-2.0
// Which tests a level must have, and whether each GPU has passed each of them.
//
// Source: nvvs/src/NvidiaValidationSuite.cpp of DCGM 4.6 (what a level runs); the user guides of
// DCGM 2.4 (memtest comes with level 4) and 3.0 (pulse_test). `eud`, `cpu_eud`, `nvbandwidth`,
// `nccl_tests` and `rist` run only where their package is installed or the GPU model is on a list;
// `sm_stress` is of level 3 up to DCGM 2.
#include "validate/collective/dcgm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::collective {
namespace {

struct ExpectedTest {
  std::string_view name;
  int level;
};
constexpr std::array kExpected{
    ExpectedTest{"memory", 2},         ExpectedTest{"pcie", 2},
    ExpectedTest{"diagnostic", 3},     ExpectedTest{"memory_bandwidth", 3},
    ExpectedTest{"targeted_power", 3}, ExpectedTest{"targeted_stress", 3},
    ExpectedTest{"memtest", 4},        ExpectedTest{"pulse_test", 4},
};
constexpr std::array<std::string_view, 7> kOptional{
    "context_create", "cpu_eud", "eud", "rist", "nvbandwidth", "nccl_tests", "sm_stress"};
/// Before DCGM 4: what "software" was then.
constexpr std::array<std::string_view, 6> kDeployment{"nvml_library",       "cuda_main_library",
                                                      "persistence_mode",   "page_retirement",
                                                      "graphics_processes", "inforom"};

struct Renamed {
  std::string_view before, now;
};
constexpr std::array kRenamed{
    Renamed{"gpu_memory", "memory"},
    Renamed{"eud_test", "eud"},
    Renamed{"cpu_eud_test", "cpu_eud"},
    Renamed{"pulse", "pulse_test"},
    Renamed{"page_retirement/row_remap", "page_retirement"},
    Renamed{"blacklist", "denylist"},
};

bool passed(const DcgmReport& report, std::string_view test, std::optional<int> gpu) {
  bool any = false;
  for (const auto& result : report.results)
    if (result.test == test && (result.gpu == gpu || !result.gpu)) {
      if (result.status != DcgmStatus::Pass) return false;
      any = any || result.gpu == gpu;
    }
  return any;
}

/// "memory on GPU 3, 5"; "": passed on all of them.
std::string lackOf(const DcgmReport& report, std::string_view test, std::size_t gpus) {
  std::vector<int> failing;
  for (const int gpu : report.gpus)
    if (!passed(report, test, gpu)) failing.push_back(gpu);
  if (failing.size() == report.gpus.size()) return fmt::format("{} on no GPU", test);
  if (!failing.empty()) return fmt::format("{} on GPU {}", test, fmt::join(failing, ", "));
  if (report.gpus.size() < gpus)
    return fmt::format("{} on more than {} GPUs", test, report.gpus.size());
  return {};
}

/// Before DCGM 4 the deployment tests are of the node, and each has a name of its own.
bool isByNode(const DcgmReport& report) {
  return std::any_of(report.results.begin(), report.results.end(), [](const auto& each) {
    return std::find(kDeployment.begin(), kDeployment.end(), each.test) != kDeployment.end();
  });
}

bool isSkipped(const DcgmFinding& finding, const std::set<std::string>& may_skip) {
  return finding.status == DcgmStatus::Skip && may_skip.contains(dcgmTestName(finding.test));
}

}  // namespace

std::string dcgmTestName(std::string_view printed) {
  std::string name(printed);
  for (auto& c : name)
    c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto row = std::find_if(kRenamed.begin(), kRenamed.end(),
                                [&name](const auto& each) { return each.before == name; });
  return row == kRenamed.end() ? name : std::string(row->now);
}

bool isOptionalDcgmTest(std::string_view test) {
  return std::find(kOptional.begin(), kOptional.end(), test) != kOptional.end();
}

std::set<std::string> notRun(const DcgmReport& report, const DcgmExpected& expected) {
  auto out = report.skipped;
  for (const auto& finding : report.findings)
    if (isSkipped(finding, expected.may_skip))
      out.insert(finding.entity.empty() ? finding.test
                                        : fmt::format("{} on {}", finding.test, finding.entity));
  return out;
}

std::vector<std::string> shortcomings(const DcgmReport& report, const DcgmExpected& expected) {
  std::vector<std::string> wrong;
  for (const auto& finding : report.findings)
    if (!isSkipped(finding, expected.may_skip))
      wrong.push_back(fmt::format("{} on {}{}: {} (error {}, {})", finding.test,
                                  finding.entity.empty() ? "the node" : finding.entity,
                                  finding.serial.empty() ? "" : " serial " + finding.serial,
                                  finding.text, finding.error_id, finding.action()));
  const auto seen = std::max(report.devices, report.gpus.size());
  if (expected.gpus == 0 || seen != expected.gpus) {
    wrong.push_back(fmt::format("it names {} of {} GPUs", seen, expected.gpus));
    return wrong;
  }
  std::vector<std::string> lacking;
  for (const auto& test : kExpected)
    if (test.level <= expected.level && !expected.may_skip.contains(std::string(test.name)))
      if (auto text = lackOf(report, test.name, expected.gpus); !text.empty())
        lacking.push_back(std::move(text));
  if (!isByNode(report)) {
    if (auto text = lackOf(report, "software", expected.gpus); !text.empty())
      lacking.push_back(std::move(text));
  } else {
    for (const auto test : kDeployment)
      if (!passed(report, test, std::nullopt) && !lackOf(report, test, expected.gpus).empty())
        lacking.emplace_back(test);
  }
  if (!lacking.empty())
    wrong.push_back(fmt::format("not passed, of what level {} has: {}", expected.level,
                                fmt::join(lacking, "; ")));
  return wrong;
}

}  // namespace muster::collective
