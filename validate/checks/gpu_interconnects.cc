// SPDX-License-Identifier: Apache-2.0
// Links of GPUs beside NVLink's own state: chip to chip on Grace, and the NVSwitches of HGX boards.
//
// Source: `nvidia-smi c2c -s` as public outputs of a GH200 show it; the files that the driver
// writes for each switch (open-gpu-kernel-modules, procfs_nvswitch.c).
#include "validate/checks/expectations.h"
#include "validate/checks/external_program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::validate {
namespace {

constexpr double kSmiSeconds = 60;
constexpr std::string_view kGpuLine = "GPU ", kLinkLine = "C2C Link ", kUnit = " GB/s";
constexpr std::size_t kShownBytes = 200;
constexpr std::string_view kFirmware = "\nBIOS Version: ";
constexpr std::string_view kSwitches = "proc/driver/nvidia-nvswitch/devices";

struct C2cGpu {
  std::string name;                   ///< "GPU 0: NVIDIA GH200 480GB (UUID: …)"
  std::vector<std::string> inactive;  ///< links, as they are shown
  std::vector<double> rates;          ///< GB/s of the others
  std::set<std::string> links;        ///< "C2C Link 0"
};

std::string_view trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// A line that is none of those known makes the whole output unknown.
Result<std::vector<C2cGpu>> parseC2c(std::string_view text) {
  std::vector<C2cGpu> gpus;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const auto twice = [line] {
      return fail(ErrorCode::Corrupt,
                  fmt::format("nvidia-smi c2c shows twice: {}", line.substr(0, kShownBytes)));
    };
    if (line.starts_with(kGpuLine)) {
      if (std::ranges::any_of(gpus, [line](const auto& gpu) { return gpu.name == line; }))
        return twice();
      gpus.push_back({std::string(line), {}, {}, {}});
    } else if (line.starts_with(kLinkLine) && !gpus.empty()) {
      const auto colon = line.find(": ");
      if (!gpus.back().links.insert(std::string(line.substr(0, colon))).second) return twice();
      const auto value = colon == line.npos ? std::string_view() : line.substr(colon + 2);
      const auto rate = value.ends_with(kUnit)
                            ? numberIn(value.substr(0, value.size() - kUnit.size()))
                            : std::nullopt;
      if (rate && *rate > 0)
        gpus.back().rates.push_back(*rate);
      else
        gpus.back().inactive.emplace_back(line);
    } else {
      return fail(ErrorCode::Corrupt,
                  "nvidia-smi c2c said: " + std::string(line.substr(0, kShownBytes)));
    }
  }
  return gpus;
}

}  // namespace

Verdict checkGpuC2c(const nlohmann::json& params, const Host& host) {
  const auto done = runProgram(host, "nvidia-smi", {"c2c", "-s"}, kSmiSeconds);
  if (!done) return broken(done.error());
  const auto gpus = parseC2c(done->out);
  if (!gpus) return noData(gpus.error().str());
  if (done->code != 0) return noData(fmt::format("nvidia-smi c2c ended with {}", done->code));
  const auto expected = params.value("gpus", gpus->size());
  if (gpus->empty() || gpus->size() != expected)
    return noData(fmt::format("nvidia-smi c2c shows {} of {} GPUs", gpus->size(), expected));
  std::size_t most = 0;
  double best = 0;
  for (const auto& gpu : *gpus) {
    most = std::max(most, gpu.rates.size() + gpu.inactive.size());
    for (const double rate : gpu.rates) best = std::max(best, rate);
  }
  const auto links = params.value("links", most);
  std::vector<std::string> wrong;
  for (const auto& gpu : *gpus) {
    if (gpu.rates.size() != links || !gpu.inactive.empty())
      wrong.push_back(fmt::format("{}: {} of {} C2C links are up{}{}", gpu.name, gpu.rates.size(),
                                  links, gpu.inactive.empty() ? "" : "; ",
                                  fmt::join(gpu.inactive, ", ")));
    else if (links == 0)
      wrong.push_back(gpu.name + ": no C2C link");
    else if (const auto slowest = std::ranges::min(gpu.rates); slowest < best)
      wrong.push_back(
          fmt::format("{}: a C2C link runs at {} GB/s, others at {}", gpu.name, slowest, best));
  }
  auto verdict =
      wrong.empty()
          ? pass(fmt::format("{} GPUs with {} C2C links at {} GB/s", gpus->size(), links, best))
          : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.values = {{"links", static_cast<double>(links)}, {"link_gbytes_per_s", best}};
  return verdict;
}

Verdict checkGpuNvswitch(const nlohmann::json& params, const Host& host) {
  if (!params.contains("switches"))
    return noData("how many NVSwitches this board has is not known: set `switches`");
  const auto expected = params.at("switches").get<std::size_t>();
  const auto switches = host.names(kSwitches);
  const auto in_machine = host.text("proc/cpuinfo").find(" hypervisor") != std::string::npos;
  if (switches.empty() && in_machine)
    return pass("a virtual machine: the NVSwitches are its host's");
  std::set<std::string> firmware;
  std::vector<std::string> wrong;
  for (const auto& name : switches) {
    const auto text = "\n" + host.text(std::filesystem::path(kSwitches) / name / "information");
    const auto at = text.find(kFirmware);
    const auto version =
        at == text.npos
            ? std::string()
            : text.substr(at + kFirmware.size(),
                          text.find('\n', at + kFirmware.size()) - at - kFirmware.size());
    if (version.empty() || version == "N/A")
      wrong.push_back(fmt::format("NVSwitch {} does not say its firmware", name));
    else
      firmware.insert(version);
  }
  if (switches.size() != expected)
    wrong.insert(wrong.begin(),
                 fmt::format("{} NVSwitches, {} expected", switches.size(), expected));
  if (firmware.size() > 1)
    wrong.push_back(fmt::format("their firmware differs: {}", fmt::join(firmware, ", ")));
  const auto wanted = params.value("firmware", std::string());
  if (!wanted.empty() && firmware != std::set<std::string>{wanted})
    wrong.push_back(fmt::format("firmware {}, expected {}", fmt::join(firmware, ", "), wanted));
  auto verdict = wrong.empty() ? pass(fmt::format("{} NVSwitches, firmware {}", switches.size(),
                                                  fmt::join(firmware, ", ")))
                               : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.values = {{"switches", static_cast<double>(switches.size())}};
  return verdict;
}

}  // namespace muster::validate
