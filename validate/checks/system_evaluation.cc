// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/system_evaluation.h"

#include "wire/xid.h"

#include <fmt/ranges.h>
#include <sys/timex.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace muster::validate {
namespace {

constexpr std::size_t kMaxFindings = 12;

struct TroubleRow {
  std::string_view words, meaning;
};
// Source: messages of the Linux kernel's mce, edac, aer, block, nvme, ext4, xfs, mlx5, watchdog, mm
// and amdgpu code, and of NVIDIA's driver.
constexpr TroubleRow kTroubles[] = {
    {"[Hardware Error]: Machine check", "machine check: CPU or memory; read the BMC's event log"},
    {"mce: [Hardware Error]", "machine check: CPU or memory; read the BMC's event log"},
    {"UE memory", "uncorrected memory error: swap the DIMM that it names"},
    {"severity=Uncorrected (Fatal)", "fatal PCIe error: reseat what sits at that address"},
    {"Uncorrectable (Fatal)", "fatal PCIe error: reseat what sits at that address"},
    {"controller is down; will reset", "an NVMe controller was lost: firmware, slot or disk"},
    {"critical medium error", "a disk cannot read a block: replace it"},
    {"I/O error, dev nvme", "an NVMe disk has failed a request: disk.health, then its slot"},
    {"EXT4-fs error", "a file system is damaged: its disk, or an abrupt power-off"},
    {"Corruption detected", "a file system is damaged: its disk, or an abrupt power-off"},
    {"device's health compromised",
     "a NIC's firmware does not answer: reset it; again: replace it"},
    {"Health issue observed", "a NIC reports a fault of its own: firmware, temperature or slot"},
    {"RmInitAdapter failed",
     "the driver cannot start a GPU: power-cycle the node; again: reseat or replace it"},
    {"soft lockup", "a processor was stuck: driver or firmware"},
    {"hard LOCKUP", "a processor was stuck with interrupts off: driver or hardware"},
    {"Out of memory: Killed process", "memory ran out: check what the image starts"},
    {"fallen off the bus", "a PCIe device has vanished: seating, power"},
    {"link is down due to too many", "a port gave up after errors: cable"},
    {"uncorrectable hardware errors detected",
     "an AMD GPU counts uncorrectable errors: amd-smi metric --ecc names it; RMA when they come "
     "back"},
    {"GPU reset begin",
     "an AMD GPU hung and was reset: its driver or firmware; again: long burn-in"},
};

struct TuningRow {
  std::string_view name, file;  ///< of every processor where it has a '*': then its value is that
                                ///< of all, or each that there is with '+' between
  std::string_view wanted,
      why;  ///< '|' between values that are good alike; empty: only evaluated when the gate names
            ///< one
};
constexpr TuningRow kTuning[] = {
    {"governor", "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance",
     "others let clocks sag between kernel launches"},
    {"numa_balancing", "proc/sys/kernel/numa_balancing", "0",
     "it unmaps pages that NICs and GPUs use"},
    {"smt", "sys/devices/system/cpu/smt/active", "", "1: two threads a core"},
    {"nmi_watchdog", "proc/sys/kernel/nmi_watchdog", "", "0 spares a hardware counter"},
    {"hugepages", "sys/kernel/mm/transparent_hugepage/enabled", "",
     "as the list with the chosen one in brackets"},
    {"epp", "sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference", "performance",
     "others let the processor itself hold clocks back"},
    {"zone_reclaim", "proc/sys/vm/zone_reclaim_mode", "0",
     "a memory node drops its caches before it asks another"},
    {"clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc",
     "others make every timestamp slow"},
    {"no_turbo", "sys/devices/system/cpu/intel_pstate/no_turbo", "0",
     "1 keeps processors at their base clock"},
    {"boost", "sys/devices/system/cpu/cpufreq/boost", "1",
     "0 keeps processors at their base clock"},
    {"aspm", "sys/module/pcie_aspm/parameters/policy",
     "[default] performance powersave powersupersave|default [performance] powersave "
     "powersupersave",
     "sleeping PCIe links wake up late: pcie_aspm.policy=performance in kernel_args"},
    {"iommu", "sys/kernel/iommu_groups/0/type", "identity",
     "every transfer of a GPU or NIC is translated: iommu=pt in kernel_args"},
};

std::string valueOf(const Host& host, std::string_view file) {
  const auto star = file.find('*');
  if (star == std::string_view::npos) return host.line(file);
  const std::filesystem::path folder(file.substr(0, file.rfind('/', star)));
  std::set<std::string> values;
  for (const auto& name : host.names(folder))
    if (name.starts_with("cpu") && numberIn(std::string_view(name).substr(3)))
      if (auto value = host.line(folder / name / file.substr(star + 2)); !value.empty())
        values.insert(std::move(value));
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
  return ClockState{state != TIME_ERROR && (seen.status & STA_UNSYNC) == 0,
                    static_cast<double>(seen.maxerror) * 1e-3};
}

Verdict evaluateClock(const ClockState& seen, double most_error_ms) {
  Verdict verdict = pass(fmt::format("synchronised, off by {:.1f} ms at most", seen.error_ms));
  if (!seen.synchronised)
    verdict = failed("the clock is not synchronised");
  else if (!(seen.error_ms <= most_error_ms))
    verdict = failed(fmt::format("the clock may be off by {:.1f} ms, {:.1f} ms are allowed",
                                 seen.error_ms, most_error_ms));
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

namespace {

constexpr int kRecoveryAction = 154;

/// XID 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": the
/// driver's word for what a GPU needs now. A line that is cut off asks for something.
bool asksForNothing(std::string_view line) {
  const auto to = line.rfind(" to ");
  return to != std::string_view::npos && line.find("(None)", to) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> xidsIn(std::string_view log) {
  constexpr std::string_view kMark = "NVRM: Xid (PCI:", kOfSwitch = "SXid (PCI:",
                             kCorrected = "Non-fatal";
  std::vector<std::string> found;
  eachLine(log, [&](std::string_view line) {
    if (const auto sxid = line.find(kOfSwitch);
        sxid != std::string_view::npos && found.size() < kMaxFindings &&
        line.find(kCorrected, sxid) == std::string_view::npos)
      found.push_back(fmt::format("{} (an NVSwitch)", line.substr(sxid, 200)));
    const auto at = line.find(kMark);
    if (at == std::string_view::npos || found.size() >= kMaxFindings) return;
    const auto end = line.find("): ", at);
    int number = -1;
    if (end != std::string_view::npos)
      std::from_chars(line.data() + end + 3, line.data() + line.size(), number);
    const auto* known = wire::findXid(fmt::format("xid.{}", number));
    const bool harmless = number == kRecoveryAction
                              ? asksForNothing(line)
                              : known && (known->needs == wire::XidNeeds::Nothing ||
                                          known->needs == wire::XidNeeds::NewJob);
    if (!harmless)
      found.push_back(fmt::format("{}", line.substr(at, 200)));  // one that cannot be read counts
  });
  return found;
}

Verdict evaluateTuning(const nlohmann::json& wanted, const Host& host) {
  std::vector<std::string> wrong, seen;
  std::set<std::string> known;
  for (const auto& row : kTuning) {
    const std::string name(row.name), value = valueOf(host, row.file);
    const auto asked = wanted.find(name);
    known.insert(name);
    const std::string expected =
        asked != wanted.end() ? asked->get<std::string>() : std::string(row.wanted);
    if (asked != wanted.end() && value.empty())
      return noData(fmt::format("this machine has no {}", row.file));
    if (value.empty()) continue;
    seen.push_back(fmt::format("{} = {}", name, value));
    if (!expected.empty() && !isOneOf(value, expected))
      wrong.push_back(fmt::format("{} is '{}', expected '{}': {}", name, value, expected, row.why));
  }
  for (const auto& [name, value] : wanted.items())
    if (!known.contains(name))
      return checkError(
          fmt::format("there is no setting '{}'; there are {}", name, fmt::join(known, ", ")));
  if (seen.empty()) return noData("this machine has none of the settings");
  Verdict verdict = wrong.empty() ? pass(fmt::format("{}", fmt::join(seen, ", ")))
                                  : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.evidence = {{"seen", seen}};
  return verdict;
}

std::map<std::string, double> idleLatencies(const Host& host) {
  const std::filesystem::path folder = "sys/devices/system/cpu";
  std::map<std::string, double> deepest;
  for (const auto& cpu : host.names(folder)) {
    if (!cpu.starts_with("cpu") || !numberIn(std::string_view(cpu).substr(3))) continue;
    for (const auto& state : host.names(folder / cpu / "cpuidle")) {
      const auto own = folder / cpu / "cpuidle" / state;
      const auto latency = numberIn(host.line(own / "latency"));
      if (!latency) continue;
      auto& most = deepest[cpu];
      if (host.line(own / "disable") != "1") most = std::max(most, *latency);
    }
  }
  return deepest;
}

Verdict evaluateIdle(const std::map<std::string, double>& latencies, double max_us,
                     std::string_view driver) {
  if (latencies.empty() && driver == "none")
    return pass("no idle states: the firmware offers none");
  if (latencies.empty()) return noData("the kernel reports no idle states");
  std::map<double, std::vector<std::string>> cpus;
  for (const auto& [cpu, latency] : latencies) cpus[latency].push_back(cpu);
  const double deepest = cpus.rbegin()->first;
  Verdict verdict = pass(fmt::format("all {} processors wake within {:.0f} µs{}", latencies.size(),
                                     deepest, max_us > 0 ? "" : "; nothing was expected"));
  if (cpus.size() > 1) {
    const auto& few = std::min_element(cpus.begin(), cpus.end(), [](const auto& a, const auto& b) {
                        return a.second.size() < b.second.size();
                      })->second;
    verdict = failed(fmt::format(
        "processors differ in the idle states that are on: {} of {} ({}{}) are not as the others",
        few.size(), latencies.size(), few.front(), few.size() > 1 ? ", …" : ""));
  } else if (max_us > 0 && !(deepest <= max_us)) {
    verdict = failed(
        fmt::format("processors take {:.0f} µs to wake, {:.0f} µs are allowed", deepest, max_us));
  }
  verdict.values = {{"idle_wake_us", deepest}};
  return verdict;
}

}  // namespace muster::validate
