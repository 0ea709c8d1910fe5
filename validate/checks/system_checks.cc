// SPDX-License-Identifier: Apache-2.0
// The machine around the GPUs: clock, kernel log, memory controllers, memory nodes, settings.
#include "validate/checks/check_row.h"
#include "validate/checks/system_evaluation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace muster::validate {
namespace {

constexpr double kMaxClockErrorMs = 100, kMaxCorrected = 100;
constexpr double kUnequalShare = 0.03, kUnequalKibibytes = 8.0 * (1 << 20);
constexpr std::chrono::seconds kLogLimit{20};

Verdict concluded(const std::vector<std::string>& wrong, std::string good) {
  return wrong.empty() ? pass(std::move(good)) : failed(fmt::format("{}", fmt::join(wrong, "; ")));
}

/// Sockets are built alike: one with less memory has lost a DIMM. The kernel keeps some of each for
/// itself.
void addUnequal(const std::map<std::string, double>& kibibytes, std::vector<std::string>& wrong) {
  double most = 0;
  for (const auto& [node, own] : kibibytes) most = std::max(most, own);
  for (const auto& [node, own] : kibibytes)
    if (most - own > std::max(kUnequalShare * most, kUnequalKibibytes))
      wrong.push_back(fmt::format(
          "{} has {:.0f} GiB of memory, another {:.0f} GiB: is a DIMM missing or switched off?",
          node, own / (1 << 20), most / (1 << 20)));
}

/// The kernel's messages of this boot, as far as its ring still holds them.
Result<std::string> kernelLog(const Host& host) {
  io::Command command;
  command.program = "dmesg", command.args = {"--kernel", "--nopager"}, command.timeout = kLogLimit;
  TRY(done, host.run(command));
  if (done.code != 0) return fail(ErrorCode::Denied, "dmesg: " + done.err);
  if (done.out.empty())
    return fail(ErrorCode::NotFound,
                "the kernel's log is empty, which is not possible after a boot");
  return done.out;
}

Verdict evaluateLog(const Host& host, std::vector<std::string> (*evaluate)(std::string_view),
                    std::string good) {
  const auto log = kernelLog(host);
  if (!log) return noData(log.error().str());
  return concluded(evaluate(*log), std::move(good));
}

}  // namespace

Verdict checkSystemTime(const nlohmann::json& params, const Host&) {
  const auto seen = clockState();
  if (!seen) return noData(seen.error().str());
  return evaluateClock(*seen, params.value("max_error_ms", kMaxClockErrorMs));
}

Verdict checkSystemKernelLog(const nlohmann::json&, const Host& host) {
  return evaluateLog(host, troublesIn, "no hardware trouble in the kernel's log");
}
Verdict checkGpuXid(const nlohmann::json&, const Host& host) {
  return evaluateLog(host, xidsIn, "no XID that requires more than a job restart");
}

Verdict checkSystemDimms(const nlohmann::json& params, const Host& host) {
  const double most = params.value("max_corrected", kMaxCorrected);
  const std::filesystem::path folder = "sys/devices/system/edac/mc";
  std::vector<std::string> wrong;
  Verdict verdict = noData("the kernel has no EDAC driver for this memory controller");
  std::size_t controllers = 0, dimms = 0;
  double corrected = 0;
  for (const auto& controller : host.names(folder)) {
    if (!controller.starts_with("mc")) continue;
    const auto ce = numberIn(host.line(folder / controller / "ce_count")),
               ue = numberIn(host.line(folder / controller / "ue_count"));
    if (!ce || !ue) return noData(controller + " gives no error counts");
    ++controllers, corrected += *ce;
    if (*ue > 0) wrong.push_back(fmt::format("{} counts {} uncorrected errors", controller, *ue));
    if (*ce > most)
      wrong.push_back(
          fmt::format("{} counts {} corrected errors, {} are allowed", controller, *ce, most));
    for (const auto& dimm : host.names(folder / controller)) {
      if (!dimm.starts_with("dimm") && !dimm.starts_with("rank")) continue;
      ++dimms;
      for (const char* counter : {"dimm_ue_count", "dimm_ce_count"})
        if (const auto errors =
                numberIn(host.line(folder / controller / dimm / counter)).value_or(0);
            errors > (counter[5] == 'u' ? 0 : most))
          wrong.push_back(fmt::format("{} '{}' has {} {}", dimm,
                                      host.line(folder / controller / dimm / "dimm_label"), counter,
                                      errors));
    }
  }
  if (controllers == 0) return verdict;
  verdict = concluded(wrong, fmt::format("{} DIMMs at {} controllers, {} corrected errors", dimms,
                                         controllers, corrected));
  verdict.values = {{"corrected_errors", corrected}};
  return verdict;
}

Verdict checkSystemNuma(const nlohmann::json&, const Host& host) {
  const std::filesystem::path nodes = "sys/devices/system/node", devices = "sys/bus/pci/devices";
  std::vector<std::string> wrong;
  std::map<std::string, double> kibibytes;  // of memory nodes with processors
  std::size_t memory_nodes = 0, seen = 0;
  for (const auto& node : host.names(nodes)) {
    if (!node.starts_with("node") || !numberIn(std::string_view(node).substr(4))) continue;
    ++memory_nodes;
    std::error_code error;
    const bool no_processors =
        std::filesystem::exists(host.root / nodes / node / "cpulist", error) &&
        host.line(nodes / node / "cpulist").empty();
    if (no_processors)
      continue;  // a GPU's own memory, or room for it: empty ones are usual on Grace
    const auto text = host.text(nodes / node / "meminfo");
    unsigned long long total = 0;
    const auto at = text.find("MemTotal:");
    if (at == std::string::npos ||
        std::sscanf(text.c_str() + at, "MemTotal: %llu kB", &total) != 1 || total == 0)
      wrong.push_back(node + " has no memory");
    else
      kibibytes[node] = static_cast<double>(total);
  }
  if (memory_nodes == 0) return noData("sysfs names no memory node");
  addUnequal(kibibytes, wrong);
  for (const auto& device : host.names(devices)) {
    const auto kind = host.line(
        devices / device /
        "class");  // 0x0302: 3D controller, 0x0300: VGA, 0x12: accelerator, 0x0200, 0x0207: network
    const bool counts = kind.starts_with("0x0302") || kind.starts_with("0x12") ||
                        kind.starts_with("0x0207") || kind.starts_with("0x0200");
    if (!counts) continue;
    ++seen;
    const auto node = numberIn(host.line(devices / device / "numa_node"));
    if (memory_nodes > 1 && (!node || *node < 0))
      wrong.push_back(fmt::format("{} (class {}) does not know its memory node", device, kind));
  }
  auto verdict =
      concluded(wrong, fmt::format("{} memory nodes, {} GPUs and NICs placed", memory_nodes, seen));
  double sum = 0;
  for (const auto& [node, own] : kibibytes) sum += own;
  verdict.values = {{"memory_nodes", static_cast<double>(memory_nodes)},
                    {"memory_gib", sum / (1 << 20)}};
  return verdict;
}

Verdict checkSystemIdle(const nlohmann::json& params, const Host& host) {
  return evaluateIdle(idleLatencies(host), params.value("max_us", 0.0),
                      host.line("sys/devices/system/cpu/cpuidle/current_driver"));
}

Verdict checkSystemTuning(const nlohmann::json& params, const Host& host) {
  return evaluateTuning(params, host);
}

}  // namespace muster::validate
