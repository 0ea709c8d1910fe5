// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/health.h"
#include "agent/tasks/sysfs.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "wire/json_reader.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace muster::agent {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kToolLimit{10};
constexpr std::size_t kMaxMountsBytes = 1u << 20;
constexpr int kWornPercent = 100;
constexpr const char* kBootId = "proc/sys/kernel/random/boot_id";
constexpr std::string_view kFabricManager = "nvidia-fabricmanager.service";
constexpr std::array<std::string_view, 10> kNoDisks = {"loop", "ram", "zram", "dm-",    "sr",
                                                       "md",   "nbd", "fd",   "mmcblk", "vd"};

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::string textOf(const fs::path& file) {
  auto text = io::readFile(file, kMaxSysfsBytes);
  return text ? trimmed(*text) : std::string();
}

std::uint64_t numberOf(const fs::path& file) {
  const auto text = textOf(file);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> namesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// The device of "/" and its options: "/dev/sda2 / ext4 rw,relatime 0 0".
void rootFileSystem(const fs::path& root, wire::HealthReport& report) {
  auto mounts = io::readFile(root / "proc/self/mounts", kMaxMountsBytes);
  if (!mounts) return;
  for (std::string_view rest = *mounts; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::vector<std::string_view> words;
    for (std::string_view left = line; !left.empty();) {
      words.push_back(left.substr(0, left.find(' ')));
      left.remove_prefix(std::min(left.size(), words.back().size() + 1));
    }
    if (words.size() < 4 || words[1] != "/" || !words[0].starts_with("/dev/")) continue;
    if (words[3] == "ro" || words[3].starts_with("ro,"))
      report.symptoms.push_back(
          {"disk.read-only", std::string(words[0].substr(5)), 1, "/ is mounted read-only"});
  }
}

bool flagAt(const json& object, const json::json_pointer& path, bool fallback) {
  const auto& value = object.contains(path) ? object.at(path) : json();
  return value.is_boolean() ? value.get<bool>() : fallback;
}
int intAt(const json& object, const json::json_pointer& path) {
  const auto& value = object.contains(path) ? object.at(path) : json();
  return value.is_number_integer() ? value.get<int>() : 0;
}

}  // namespace

Result<std::vector<wire::Symptom>> parseSmart(std::string_view text, const std::string& device) {
  const auto parsed = jsonOrNone(text, kToolJson);
  if (!parsed.is_object())
    return fail(ErrorCode::Corrupt, "smartctl printed no JSON about " + device);
  std::vector<wire::Symptom> out;
  using Path = json::json_pointer;
  if (!flagAt(parsed, Path("/smart_status/passed"), true))
    out.push_back({"disk.failing", device, 1, "its own health status is: failed"});
  if (const int bits = intAt(parsed, Path("/nvme_smart_health_information_log/critical_warning"));
      bits != 0 && out.empty())
    out.push_back({"disk.failing", device, 1, fmt::format("NVMe critical warning {:#x}", bits)});
  if (const int used = intAt(parsed, Path("/nvme_smart_health_information_log/percentage_used"));
      used >= kWornPercent)
    out.push_back({"disk.worn", device, 1, fmt::format("{} % of its endurance is used", used)});
  return out;
}

std::vector<wire::Symptom> parseUnits(std::string_view shown, std::string_view failed) {
  std::vector<wire::Symptom> out;
  const auto is = [shown](std::string_view line) {
    return shown.find(line) != std::string_view::npos;
  };
  // On a node without NVSwitch the package may be installed; only what is meant to run is missed.
  const bool meant = is("LoadState=loaded") && is("UnitFileState=enabled");
  if (meant && !is("\nActiveState=active") && !shown.starts_with("ActiveState=active"))
    out.push_back(
        {"system.fabric-manager", std::string(kFabricManager), 1, "it is enabled, but not active"});
  for (std::string_view rest = failed; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto unit = line.substr(0, line.find(' '));
    if (!unit.empty() && unit != kFabricManager)
      out.push_back({"system.unit-failed", std::string(unit), 1, std::string(line)});
  }
  return out;
}

Task<wire::HealthReport> HealthSense::look() {
  wire::HealthReport report;
  kernel(report);
  co_await gpus(report);
  co_await disks(report);
  network(report);
  co_await units(report);
  if (report.symptoms.size() > wire::kMaxSymptoms) report.symptoms.resize(wire::kMaxSymptoms);
  for (auto& symptom : report.symptoms)
    symptom.text.resize(std::min(symptom.text.size(), wire::kMaxSymptomTextBytes));
  for (auto& [source, state] : report.sources)
    state.resize(std::min(state.size(), wire::kMaxSymptomTextBytes));
  co_return report;
}

std::uint64_t RateWindow::lastHour(std::uint64_t value, std::chrono::seconds up_for) {
  if (seen_.empty())
    seen_.emplace_back(std::chrono::seconds(0), up_for < wire::kRateWindow ? 0 : value);
  if (value < seen_.back().second) seen_.assign(1, {up_for, 0});  // the port's driver began anew
  // What is older than the window is of use only as the value that it began with.
  while (seen_.size() > 1 && seen_[1].first + wire::kRateWindow <= up_for) seen_.pop_front();
  const auto before = seen_.front().second;
  if (seen_.back().first + std::chrono::minutes(1) <= up_for) seen_.emplace_back(up_for, value);
  return value - before;
}

HealthSense::HealthSense(TaskTools tools, std::filesystem::path state)
    : tools_(std::move(tools)), marks_file_(state.empty() ? state : state / "gpu-resets.json") {
  if (marks_file_.empty()) return;
  auto text = io::readFile(marks_file_, kMaxSysfsBytes);
  const auto known = text ? jsonOrNone(*text, kKeptJson) : json();
  if (!known.is_object() || known.value("boot", "") != textOf(tools_.root / kBootId)) return;
  const auto marks = known.value("over", json::object());
  std::map<std::string, std::uint64_t> over;
  for (const auto& [device, sequence] : marks.items())
    if (sequence.is_number_unsigned()) over[device] = sequence.get<std::uint64_t>();
  log_.setOver(std::move(over));
}

void HealthSense::gpusWereReset(const std::vector<std::string>& devices) {
  (void)log_.read(tools_.root / "dev/kmsg");  // what was said until now belongs to the past
  for (const auto& device : devices) log_.forgetGpu(device);
  gpus_.reset();
  if (marks_file_.empty()) return;
  const json marks{{"boot", textOf(tools_.root / kBootId)}, {"over", log_.overUpTo()}};
  if (auto kept = io::writeFileAtomic(marks_file_, jsonText(marks), 0600); !kept)
    logWarning("agent",
               "{}; after a restart of the agent old messages of the reset GPUs count again",
               kept.error().str());
}

std::chrono::seconds HealthSense::upFor() const {
  const auto uptime = textOf(tools_.root / "proc/uptime");
  double seconds = 0;
  std::from_chars(uptime.data(), uptime.data() + uptime.size(), seconds);
  return std::chrono::seconds(static_cast<long>(seconds));
}

void HealthSense::counter(wire::HealthReport& report, wire::Symptom symptom) {
  symptom.last_hour = windows_[symptom.id + "@" + symptom.device].lastHour(symptom.count, upFor());
  if (symptom.count > 0)
    report.symptoms.push_back(
        std::move(symptom));  // zeros are counted too: the window begins with them
}

void HealthSense::kernel(wire::HealthReport& report) {
  const auto read = log_.read(tools_.root / "dev/kmsg");
  report.sources["kernel"] = read ? std::string(wire::kSourceOk) : read.error().str();
  for (auto& symptom : log_.symptoms()) report.symptoms.push_back(std::move(symptom));
}

Async<wire::HealthReport> HealthSense::askGpus() {
  std::vector<std::string> args = {"tool", "gpu-health"};
  CO_TRY(out, co_await runTool(tools_, tools_.self.string(), std::move(args), kToolLimit));
  co_return wire::parseHealthReport(out);
}

/// The tool answers a HealthReport of its own. What it said last holds until it has been silent for
/// some looks: symptoms that come and go with the library's moods would be worth nothing. A GPU
/// that is gone shows in no driver's list, only in its number.
Task<void> HealthSense::gpus(wire::HealthReport& report) {
  auto seen = co_await askGpus();
  gpu_silences_ = seen ? 0 : gpu_silences_ + 1;
  const std::string trouble = seen ? "" : seen.error().str();
  if (seen) gpus_ = std::move(*seen);
  auto& state = report.sources["gpu"];
  state = gpus_ ? std::string(wire::kSourceOk) : std::string(wire::kSourceStarting);
  if (gpu_silences_ >= kSilencesMeant) state = trouble;
  if (!gpus_) co_return;
  const auto source = gpus_->sources.find("gpu");
  if (gpu_silences_ == 0)
    state = source == gpus_->sources.end() ? "the tool did not report it" : source->second;
  const auto listed = gpus_->sources.find("gpus");
  std::size_t count = 0;
  if (listed != gpus_->sources.end())
    std::from_chars(listed->second.data(), listed->second.data() + listed->second.size(), count);
  most_gpus_ = std::max(most_gpus_, count);
  if (count < most_gpus_ && source != gpus_->sources.end() && source->second == wire::kSourceOk)
    report.symptoms.push_back({"gpu.lost", "", most_gpus_ - count,
                               fmt::format("{} GPUs are seen, {} were", count, most_gpus_)});
  report.symptoms.insert(report.symptoms.end(), gpus_->symptoms.begin(), gpus_->symptoms.end());
}

Task<void> HealthSense::disks(wire::HealthReport& report) {
  rootFileSystem(tools_.root, report);
  auto names = namesIn(tools_.root / "sys/block");
  std::erase_if(names, [](const std::string& name) {
    return std::any_of(kNoDisks.begin(), kNoDisks.end(),
                       [&name](std::string_view prefix) { return name.starts_with(prefix); });
  });
  if (names.empty()) {
    report.sources["disk"] = std::string(wire::kSourceAbsent);
    co_return;
  }
  const auto& name = names[next_disk_++ % names.size()];
  std::vector<std::string> args = {"--json", "-H", "-A", "/dev/" + name};
  io::Command command;
  command.program = "smartctl";
  command.args = std::move(args);
  command.timeout = kToolLimit;
  auto run = tools_.processes.run(
      std::move(command));  // its exit status is a set of bits: the words decide
  auto exit = co_await std::move(run);
  disk_trouble_.clear();
  if (exit) {
    auto parsed = parseSmart(exit->out, name);
    if (parsed) by_disk_[name] = std::move(*parsed);
    if (!parsed) disk_trouble_ = parsed.error().str();
  } else {
    disk_trouble_ = exit.error().str();
  }
  report.sources["disk"] = disk_trouble_.empty() ? std::string(wire::kSourceOk) : disk_trouble_;
  std::erase_if(by_disk_, [&names](const auto& entry) {
    return std::find(names.begin(), names.end(), entry.first) == names.end();
  });
  for (const auto& [disk, symptoms] : by_disk_)
    report.symptoms.insert(report.symptoms.end(), symptoms.begin(), symptoms.end());
}

void HealthSense::network(wire::HealthReport& report) {
  const auto devices = tools_.root / "sys/class/infiniband";
  netDevices(report);
  const auto names = namesIn(devices);
  report.sources["network"] = std::string(names.empty() ? wire::kSourceAbsent : wire::kSourceOk);
  for (const auto& name : names)
    for (const auto& port : namesIn(devices / name / "ports")) {
      const auto folder = devices / name / "ports" / port;
      const auto id = name + "/" + port;
      const auto state = textOf(folder / "state");
      if (state.find("ACTIVE") != std::string::npos) active_ports_.insert(id);
      if (state.find("ACTIVE") == std::string::npos && active_ports_.contains(id))
        report.symptoms.push_back(
            {"network.link-down", id, 1, "the port was active, now it is: " + state});
      const auto flaps = numberOf(folder / "counters/link_downed");
      counter(
          report,
          {"network.link-flaps", id, flaps, fmt::format("its link went down {} times", flaps), {}});
      const auto errors = numberOf(
          folder /
          "counters/port_rcv_errors");  // symbol errors are evaluated by their rate (LinkSense)
      counter(report, {"network.errors", id, errors, fmt::format("{} receive errors", errors), {}});
      if (textOf(folder / "link_layer") != "InfiniBand")
        continue;  // Ethernet counts no symbol errors
      for (auto& symptom : links_.see(id, readSysfsPort(folder), textOf(folder / "rate"), upFor()))
        report.symptoms.push_back(std::move(symptom));
    }
}

/// Ethernet ports with hardware behind them; bridges and the like have no `device`.
void HealthSense::netDevices(wire::HealthReport& report) {
  const auto folder = tools_.root / "sys/class/net";
  std::error_code ignored;
  for (const auto& name : namesIn(folder)) {
    if (!fs::exists(folder / name / "device", ignored)) continue;
    const auto flaps = numberOf(folder / name / "carrier_down_count");  // one is the boot's own
    counter(report, {"network.link-flaps",
                     name,
                     std::max<std::uint64_t>(flaps, 1) - 1,
                     fmt::format("its carrier went {} times", flaps),
                     {}});
  }
}

Task<void> HealthSense::units(wire::HealthReport& report) {
  std::vector<std::string> show = {"show", std::string(kFabricManager),
                                   "--property=LoadState,ActiveState,UnitFileState"};
  std::vector<std::string> list = {"list-units", "--state=failed", "--type=service", "--plain",
                                   "--no-legend"};
  auto shown = co_await runTool(tools_, "systemctl", std::move(show), kToolLimit);
  auto failed = co_await runTool(tools_, "systemctl", std::move(list), kToolLimit);
  const bool good = shown && failed;
  report.sources["units"] =
      good ? std::string(wire::kSourceOk) : (shown ? failed : shown).error().str();
  if (good)
    for (auto& symptom : parseUnits(*shown, *failed)) report.symptoms.push_back(std::move(symptom));
}

}  // namespace muster::agent
