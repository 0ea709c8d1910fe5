// The machine around the GPUs: clock, kernel log, memory controllers, NUMA, settings, disks.
#include "validate/checks/catalogue.h"
#include "validate/checks/system_judges.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::validate {
namespace {

constexpr double kMaxClockErrorMs = 100, kMaxCorrected = 100;
constexpr std::chrono::seconds kLogLimit{20};

Verdict concluded(const std::vector<std::string>& wrong, std::string good) { return wrong.empty() ? pass(std::move(good)) : failed(fmt::format("{}", fmt::join(wrong, "; "))); }

/// The kernel's messages of this boot, as far as its ring still holds them.
Result<std::string> kernelLog(const Host& host) {
  io::Command command;
  command.program = "dmesg", command.args = {"--kernel", "--nopager"}, command.timeout = kLogLimit;
  TRY(done, host.run(command));
  if (done.code != 0) return fail(ErrorCode::Denied, "dmesg: " + done.err);
  if (done.out.empty()) return fail(ErrorCode::NotFound, "the kernel's log is empty: that of a machine that has booted is not");
  return done.out;
}

Verdict judgeLog(const Host& host, std::vector<std::string> (*judge)(std::string_view), std::string good) {
  const auto log = kernelLog(host);
  if (!log) return noData(log.error().str());
  return concluded(judge(*log), std::move(good));
}

}  // namespace

Verdict checkSystemTime(const nlohmann::json& params, const Host&) {
  const auto seen = clockState();
  if (!seen) return noData(seen.error().str());
  return judgeClock(*seen, params.value("max_error_ms", kMaxClockErrorMs));
}

Verdict checkSystemKernelLog(const nlohmann::json&, const Host& host) { return judgeLog(host, troublesIn, "no hardware trouble in the kernel's log"); }
Verdict checkGpuXid(const nlohmann::json&, const Host& host) { return judgeLog(host, xidsIn, "no XID that asks for more than a new job"); }

Verdict checkSystemDimms(const nlohmann::json& params, const Host& host) {
  const double most = params.value("max_corrected", kMaxCorrected);
  const std::filesystem::path folder = "sys/devices/system/edac/mc";
  std::vector<std::string> wrong;
  Verdict verdict = noData("the kernel has no EDAC driver for this memory controller");
  std::size_t controllers = 0, dimms = 0;
  double corrected = 0;
  for (const auto& controller : host.names(folder)) {
    if (!controller.starts_with("mc")) continue;
    const auto ce = numberIn(host.line(folder / controller / "ce_count")), ue = numberIn(host.line(folder / controller / "ue_count"));
    if (!ce || !ue) return noData(controller + " gives no error counts");
    ++controllers, corrected += *ce;
    if (*ue > 0) wrong.push_back(fmt::format("{} counts {} uncorrected errors", controller, *ue));
    if (*ce > most) wrong.push_back(fmt::format("{} counts {} corrected errors, {} are allowed", controller, *ce, most));
    for (const auto& dimm : host.names(folder / controller)) {
      if (!dimm.starts_with("dimm") && !dimm.starts_with("rank")) continue;
      ++dimms;
      for (const char* counter : {"dimm_ue_count", "dimm_ce_count"})
        if (const auto errors = numberIn(host.line(folder / controller / dimm / counter)).value_or(0); errors > (counter[5] == 'u' ? 0 : most))
          wrong.push_back(fmt::format("{} '{}' has {} {}", dimm, host.line(folder / controller / dimm / "dimm_label"), counter, errors));
    }
  }
  if (controllers == 0) return verdict;
  verdict = concluded(wrong, fmt::format("{} DIMMs at {} controllers, {} corrected errors", dimms, controllers, corrected));
  verdict.values = {{"corrected_errors", corrected}};
  return verdict;
}

Verdict checkSystemNuma(const nlohmann::json&, const Host& host) {
  const std::filesystem::path nodes = "sys/devices/system/node", devices = "sys/bus/pci/devices";
  std::vector<std::string> wrong;
  std::size_t memory_nodes = 0, seen = 0;
  for (const auto& node : host.names(nodes)) {
    if (!node.starts_with("node")) continue;
    ++memory_nodes;
    const auto text = host.text(nodes / node / "meminfo");
    unsigned long long kibibytes = 0;
    const auto at = text.find("MemTotal:");
    if (at == std::string::npos || std::sscanf(text.c_str() + at, "MemTotal: %llu kB", &kibibytes) != 1 || kibibytes == 0) wrong.push_back(node + " has no memory");
  }
  if (memory_nodes == 0) return noData("sysfs names no memory node");
  for (const auto& device : host.names(devices)) {
    const auto kind = host.line(devices / device / "class");   // 0x0302: 3D controller, 0x0300: VGA, 0x12: accelerator, 0x0200, 0x0207: network
    const bool counts = kind.starts_with("0x0302") || kind.starts_with("0x12") || kind.starts_with("0x0207") || kind.starts_with("0x0200");
    if (!counts) continue;
    ++seen;
    const auto node = numberIn(host.line(devices / device / "numa_node"));
    if (memory_nodes > 1 && (!node || *node < 0)) wrong.push_back(fmt::format("{} (class {}) does not know its memory node", device, kind));
  }
  return concluded(wrong, fmt::format("{} memory nodes, {} GPUs and NICs placed", memory_nodes, seen));
}

Verdict checkSystemKnobs(const nlohmann::json& params, const Host& host) { return judgeKnobs(params, host); }

Verdict checkDiskRead(const nlohmann::json& params, const Host& host) {
  const double seconds = params.value("seconds", 5.0), floor = params.value("min_mbytes_per_s", 0.0);
  std::map<std::string, std::map<std::string, double>> rates;  // by model, by disk
  std::vector<std::string> wrong;
  Verdict verdict = noData("this node has no NVMe disk");
  for (const auto& disk : host.names("sys/block")) {
    if (!disk.starts_with("nvme")) continue;
    io::Command fio;
    fio.program = "fio";
    fio.args = {"--name=read", "--filename=/dev/" + disk, "--readonly", "--rw=read", "--bs=1M", "--iodepth=32", "--ioengine=libaio", "--direct=1",
                "--time_based", fmt::format("--runtime={:.0f}", std::max(seconds, 1.0)), "--output-format=json"};
    fio.timeout = std::chrono::seconds(static_cast<long>(seconds) + 30);
    const auto done = host.run(fio);
    if (!done) return brokenTest(done.error().str());
    const auto rate = done->code == 0 ? parseFioRead(done->out) : Result<double>(fail(ErrorCode::Internal, fmt::format("fio ended with {}: {}", done->code, done->err)));
    if (!rate) return noData(disk + ": " + rate.error().str());
    rates[host.line("sys/block/" + disk + "/device/model")][disk] = *rate;
    verdict.values[disk + "_mbytes_per_s"] = *rate;
    if (!(*rate >= floor)) wrong.push_back(fmt::format("{} reads {:.0f} MB/s, expected {:.0f}", disk, *rate, floor));
  }
  if (rates.empty()) return verdict;
  for (const auto& [model, disks] : rates)
    for (auto& slow : slowerThanTheirLike(disks)) wrong.push_back(fmt::format("{} ({})", slow, model));
  verdict.status = wrong.empty() ? agent::CheckStatus::Pass : agent::CheckStatus::Fail;
  verdict.text = wrong.empty() ? fmt::format("{} NVMe disks read", verdict.values.size()) : fmt::format("{}", fmt::join(wrong, "; "));
  return verdict;
}

}  // namespace muster::validate
