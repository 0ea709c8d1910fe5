#include "validate/checks/system_judges.h"

#include "agent/protocol/xid.h"

#include <fmt/ranges.h>
#include <sys/timex.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace muster::validate {
namespace {

constexpr std::size_t kMaxFindings = 12;
constexpr double kSlowShare = 0.8;

struct TroubleRow {
  std::string_view words, meaning;
};
// Source: messages of the Linux kernel's mce, edac, aer, nvme, watchdog, mm and amdgpu code.
constexpr TroubleRow kTroubles[] = {
    {"[Hardware Error]: Machine check", "machine check: CPU or memory; read the BMC's event log"},
    {"mce: [Hardware Error]", "machine check: CPU or memory; read the BMC's event log"},
    {"UE memory", "uncorrected memory error: swap the DIMM that it names"},
    {"severity=Uncorrected (Fatal)", "fatal PCIe error: reseat what sits at that address"},
    {"Uncorrectable (Fatal)", "fatal PCIe error: reseat what sits at that address"},
    {"controller is down; will reset", "an NVMe controller was lost: firmware, slot or disk"},
    {"critical medium error", "a disk cannot read a block: replace it"},
    {"soft lockup", "a processor was stuck: driver or firmware"},
    {"hard LOCKUP", "a processor was stuck with interrupts off: driver or hardware"},
    {"Out of memory: Killed process", "memory ran out: what does the image start?"},
    {"fallen off the bus", "a PCIe device has vanished: seating, power"},
    {"link is down due to too many", "a port gave up after errors: cable"},
    {"uncorrectable hardware errors detected", "an AMD GPU counts uncorrectable errors: amd-smi metric --ecc names it; RMA when they come back"},
    {"GPU reset begin", "an AMD GPU hung and was reset: its driver or firmware; again: long burn-in"},
};

struct KnobRow {
  std::string_view name, file;   ///< of every processor where it has a '*': then its value is that of all, or each that there is with '+' between
  std::string_view wanted, why;  ///< '|' between values that are good alike; empty: only judged when the gate names one
};
constexpr KnobRow kKnobs[] = {
    {"governor", "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance", "others let clocks sag between kernel launches"},
    {"numa_balancing", "proc/sys/kernel/numa_balancing", "0", "it unmaps pages that NICs and GPUs use"},
    {"smt", "sys/devices/system/cpu/smt/active", "", "1: two threads a core"},
    {"nmi_watchdog", "proc/sys/kernel/nmi_watchdog", "", "0 spares a hardware counter"},
    {"hugepages", "sys/kernel/mm/transparent_hugepage/enabled", "", "as the list with the chosen one in brackets"},
    {"clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc", "others make every timestamp slow"},
    {"no_turbo", "sys/devices/system/cpu/intel_pstate/no_turbo", "0", "1 keeps processors at their base clock"},
    {"boost", "sys/devices/system/cpu/cpufreq/boost", "1", "0 keeps processors at their base clock"},
    {"aspm", "sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave|default [performance] powersave powersupersave",
     "sleeping PCIe links wake up late: pcie_aspm.policy=performance in kernel_args"},
    {"iommu", "sys/kernel/iommu_groups/0/type", "identity", "every transfer of a GPU or NIC is translated: iommu=pt in kernel_args"},
};

std::string valueOf(const Host& host, std::string_view file) {
  const auto star = file.find('*');
  if (star == std::string_view::npos) return host.line(file);
  const std::filesystem::path folder(file.substr(0, file.rfind('/', star)));
  std::set<std::string> values;
  for (const auto& name : host.names(folder))
    if (name.starts_with("cpu") && numberIn(std::string_view(name).substr(3)))
      if (auto value = host.line(folder / name / file.substr(star + 2)); !value.empty()) values.insert(std::move(value));
  return fmt::format("{}", fmt::join(values, "+"));
}

bool isOneOf(std::string_view value, std::string_view list) {
  for (;;) {
    const auto bar = list.find('|');
    if (value == list.substr(0, bar)) return true;
    if (bar == std::string_view::npos) return false;
    list.remove_prefix(bar + 1);
  }
}

void eachLine(std::string_view log, const std::function<void(std::string_view)>& take) {
  for (std::size_t at = 0; at < log.size();) {
    const auto end = std::min(log.find('\n', at), log.size());
    take(log.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

Result<ClockState> clockState() {
  timex seen{};
  const int state = adjtimex(&seen);
  if (state < 0) return fail(ErrorCode::Unavailable, "adjtimex is refused here");
  return ClockState{state != TIME_ERROR && (seen.status & STA_UNSYNC) == 0, static_cast<double>(seen.maxerror) * 1e-3};
}

Verdict judgeClock(const ClockState& seen, double most_error_ms) {
  Verdict verdict = pass(fmt::format("synchronised, off by {:.1f} ms at most", seen.error_ms));
  if (!seen.synchronised) verdict = failed("the clock is not synchronised");
  else if (!(seen.error_ms <= most_error_ms)) verdict = failed(fmt::format("the clock may be off by {:.1f} ms, {:.1f} ms are allowed", seen.error_ms, most_error_ms));
  verdict.values = {{"clock_error_ms", seen.error_ms}};
  return verdict;
}

std::vector<std::string> troublesIn(std::string_view log) {
  std::vector<std::string> found;
  eachLine(log, [&](std::string_view line) {
    for (const auto& row : kTroubles)
      if (found.size() < kMaxFindings && line.find(row.words) != std::string_view::npos) {
        found.push_back(fmt::format("{} ({})", line.substr(0, 200), row.meaning));
        break;
      }
  });
  return found;
}

std::vector<std::string> xidsIn(std::string_view log) {
  constexpr std::string_view kMark = "NVRM: Xid (PCI:";
  std::vector<std::string> found;
  eachLine(log, [&](std::string_view line) {
    const auto at = line.find(kMark);
    if (at == std::string_view::npos || found.size() >= kMaxFindings) return;
    const auto end = line.find("): ", at);
    int number = -1;
    if (end != std::string_view::npos) std::from_chars(line.data() + end + 3, line.data() + line.size(), number);
    const auto* known = agent::findXid(fmt::format("xid.{}", number));
    const bool harmless = known && (known->needs == agent::XidNeeds::Nothing || known->needs == agent::XidNeeds::NewJob);
    if (!harmless) found.push_back(fmt::format("{}", line.substr(at, 200)));   // one that cannot be read counts
  });
  return found;
}

Verdict judgeKnobs(const nlohmann::json& wanted, const Host& host) {
  std::vector<std::string> wrong, seen;
  std::set<std::string> known;
  for (const auto& row : kKnobs) {
    const std::string name(row.name), value = valueOf(host, row.file);
    const auto asked = wanted.find(name);
    known.insert(name);
    const std::string expected = asked != wanted.end() ? asked->get<std::string>() : std::string(row.wanted);
    if (asked != wanted.end() && value.empty()) return noData(fmt::format("this machine has no {}", row.file));
    if (value.empty()) continue;
    seen.push_back(fmt::format("{} = {}", name, value));
    if (!expected.empty() && !isOneOf(value, expected)) wrong.push_back(fmt::format("{} is '{}', expected '{}': {}", name, value, expected, row.why));
  }
  for (const auto& [name, value] : wanted.items())
    if (!known.contains(name)) return brokenTest(fmt::format("there is no setting '{}'; there are {}", name, fmt::join(known, ", ")));
  if (seen.empty()) return noData("this machine has none of the settings");
  Verdict verdict = wrong.empty() ? pass(fmt::format("{}", fmt::join(seen, ", "))) : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.evidence = {{"seen", seen}};
  return verdict;
}

Result<double> parseFioRead(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("jobs") || !json["jobs"].is_array() || json["jobs"].empty()) return fail(ErrorCode::Corrupt, "fio printed no JSON with jobs");
  double bytes = 0;
  for (const auto& job : json["jobs"]) {
    if (!job.is_object() || job.value("error", -1) != 0) return fail(ErrorCode::Corrupt, fmt::format("a job of fio ended with error {}", job.value("error", -1)));
    const auto read = job.value("read", nlohmann::json::object());
    if (!read.contains("bw_bytes") || !read["bw_bytes"].is_number()) return fail(ErrorCode::Corrupt, "fio gave no bw_bytes");
    bytes += read["bw_bytes"].get<double>();
  }
  if (!std::isfinite(bytes) || bytes <= 0) return fail(ErrorCode::Corrupt, "fio read nothing");
  return bytes * 1e-6;
}

std::vector<std::string> slowerThanTheirLike(const std::map<std::string, double>& rates) {
  if (rates.size() < 3) return {};
  std::vector<double> sorted;
  for (const auto& [disk, rate] : rates) sorted.push_back(rate);
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  std::vector<std::string> slow;
  for (const auto& [disk, rate] : rates)
    if (!(rate >= kSlowShare * median)) slow.push_back(fmt::format("{} reads {:.0f} MB/s, others of its model {:.0f}", disk, rate, median));
  return slow;
}

}  // namespace muster::validate
