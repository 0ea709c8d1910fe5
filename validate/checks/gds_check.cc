// SPDX-License-Identifier: Apache-2.0
// GPUDirect Storage by NVIDIA's gdscheck. It reads what driver and configuration are able to do,
// and moves no data; its exit status is 0 whatever it found.
#include "base/utf8.h"
#include "validate/checks/external_program.h"
#include "validate/checks/gds_text.h"
#include "validate/checks/gpu_snapshot.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>

namespace muster::validate {
namespace {

constexpr double kGdsSeconds = 120;  ///< it looks at every GPU
constexpr const char* kProgram = "/usr/local/cuda/gds/tools/gdscheck";
constexpr std::string_view kRelease = "GDS release version:", kGpu = "GPU index ",
                           kVerification = "Platform verification ", kIommu = "IOMMU:";

/// Until release 1.15, and since.
constexpr std::array<std::string_view, 5> kDirect{"Supported", "nvfs", "p2pdma", "dmabuf", "c2c"};
constexpr std::array<std::string_view, 3> kNotDirect{"Unsupported", "compat", "N/A"};

bool isIn(std::span<const std::string_view> words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

enum class Section { Heading, Environment, Drivers, Settings, Gpus, Platform };
struct SectionName {
  std::string_view line;
  Section section;
};
constexpr SectionName kSections[] = {{"ENVIRONMENT:", Section::Environment},
                                     {"DRIVER CONFIGURATION:", Section::Drivers},
                                     {"CUFILE CONFIGURATION:", Section::Settings},
                                     {"GPU INFO:", Section::Gpus},
                                     {"PLATFORM INFO:", Section::Platform}};

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

/// "nvfs, compat" → both.
std::set<std::string> waysIn(const std::string& text) {
  std::set<std::string> out;
  std::istringstream from(text);
  for (std::string way; std::getline(from, way, ',');)
    if (const auto word = trimmed(way); !word.empty()) out.insert(word);
  return out;
}

Result<void> readGpu(std::string_view line, GdsPlatform& out) {
  line.remove_prefix(kGpu.size());
  int index = -1;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), index);
  constexpr std::string_view kYes = " supports GDS";
  const auto at = line.find(kYes);
  const auto behind = at == line.npos ? std::string_view() : line.substr(at + kYes.size());
  const bool is_denied = line.find(" not ") != line.npos;
  const bool yes = at != line.npos && !is_denied && (behind.empty() || behind.front() == ','),
             no = line.find("does not support GDS") != line.npos ||
                  line.find("not supported") != line.npos;
  if (read.ec != std::errc() || index < 0 || yes == no)
    return fail(ErrorCode::Corrupt, fmt::format("\"{}\" says nothing of a GPU", line));
  if (!out.gpus.emplace(index, yes).second)
    return fail(ErrorCode::Corrupt, fmt::format("GPU {} is there twice", index));
  return {};
}

Result<void> readLine(const std::string& line, Section section, GdsPlatform& out) {
  const auto colon = line.find(':');
  const auto key = colon == line.npos ? std::string() : trimmed(line.substr(0, colon));
  const auto value = colon == line.npos ? std::string() : trimmed(line.substr(colon + 1));
  switch (section) {
    case Section::Heading:
      if (line.starts_with(kRelease)) out.release = value;
      return {};
    case Section::Environment:
      return {};
    case Section::Drivers:
      if (key.empty()) return fail(ErrorCode::Corrupt, fmt::format("\"{}\" is no driver", line));
      if (!key.starts_with("--") && !out.drivers.emplace(key, waysIn(value)).second)
        return fail(ErrorCode::Corrupt, fmt::format("the driver {} is there twice", key));
      return {};
    case Section::Settings:
      if (!key.empty()) out.settings[key] = value;
      return {};
    case Section::Gpus:
      return line.starts_with(kGpu) ? readGpu(line, out) : Result<void>();
    case Section::Platform:
      if (line.starts_with(kIommu)) out.iommu = value;
      if (line.starts_with(kVerification)) {
        out.verification = line.substr(kVerification.size());
        out.verified = out.verification == "succeeded";
      }
      return {};
  }
  return {};
}

}  // namespace

bool GdsPlatform::isDirect(const std::set<std::string>& ways) {
  return std::ranges::any_of(ways, [](const std::string& way) { return isIn(kDirect, way); });
}

std::set<std::string> GdsPlatform::unknownWords(const std::set<std::string>& ways) {
  std::set<std::string> out;
  for (const auto& way : ways)
    if (!isIn(kDirect, way) && !isIn(kNotDirect, way)) out.insert(way);
  return out;
}

Result<GdsPlatform> parseGdsCheck(std::string_view output) {
  GdsPlatform out;
  Section section = Section::Heading;
  std::set<Section> met;
  std::istringstream lines{std::string(output)};
  for (std::string raw; std::getline(lines, raw);) {
    const auto line = trimmed(raw);
    if (line.empty() || line.find_first_not_of('=') == line.npos) continue;
    const auto named = std::ranges::find(kSections, line, &SectionName::line);
    if (named != std::end(kSections)) {
      section = named->section;
      if (!met.insert(section).second)
        return fail(ErrorCode::Corrupt, fmt::format("{} is there twice", line));
      continue;
    }
    TRY_OK(readLine(line, section, out));
  }
  for (const auto& each : kSections)
    if (each.section != Section::Environment && !met.contains(each.section))
      return fail(ErrorCode::Corrupt, fmt::format("it has no section {}", each.line));
  // Releases 1.13 to 1.15 print it as a driver of its own; it is a way of the same disks.
  if (const auto own = out.drivers.find("NVMe P2PDMA");
      own != out.drivers.end() && own->second == std::set<std::string>{"Supported"})
    out.drivers["NVMe"].insert("p2pdma");
  if (out.release.empty()) return fail(ErrorCode::Corrupt, "it does not say which release it is");
  if (out.verification.empty())
    return fail(ErrorCode::Corrupt, "it ends without a word on the platform");
  return out;
}

namespace {

std::vector<std::string> shortcomings(const GdsPlatform& seen, const std::set<std::string>& drivers,
                                      std::size_t gpus) {
  std::vector<std::string> wrong;
  if (!seen.verified) wrong.push_back("Platform verification " + seen.verification);
  for (const auto& [index, supports] : seen.gpus)
    if (!supports) wrong.push_back(fmt::format("GPU {} does not support GDS", index));
  if (seen.gpus.size() != gpus)
    wrong.push_back(fmt::format("{} of {} GPUs are shown", seen.gpus.size(), gpus));
  for (const auto& name : drivers) {
    const auto driver = seen.drivers.find(name);
    if (driver == seen.drivers.end())
      wrong.push_back(fmt::format("gdscheck {} knows no driver {}", seen.release, name));
    else if (!GdsPlatform::isDirect(driver->second))
      wrong.push_back(fmt::format("{}: {}, data go through the processor's memory", name,
                                  fmt::join(driver->second, ", ")));
  }
  if (const auto forced = seen.settings.find("properties.force_compat_mode");
      forced != seen.settings.end() && forced->second == "true")
    wrong.push_back("properties.force_compat_mode is true: no data move directly");
  return wrong;
}

/// "NVMe: maybe": the first driver of these with a word that nobody knows; empty: none.
std::string unknownOf(const GdsPlatform& seen, const std::set<std::string>& drivers) {
  for (const auto& name : drivers)
    if (const auto driver = seen.drivers.find(name); driver != seen.drivers.end())
      if (const auto words = GdsPlatform::unknownWords(driver->second); !words.empty())
        return fmt::format("{}: \"{}\"", name,
                           cutToBytes(fmt::format("{}", fmt::join(words, ", ")), 100));
  return {};
}

}  // namespace

Verdict checkGpuGds(const nlohmann::json& params, const Host& host) {
  std::size_t gpus = 0;
  if (params.contains("gpus")) {
    gpus = params.at("gpus").get<std::size_t>();
  } else {
    const auto look = readGpus();
    if (!look) return noData("how many GPUs there must be is unknown: " + look.error().str());
    gpus = look->gpus.size();
  }
  if (gpus == 0) return noData("NVML sees no GPU");
  const auto drivers = waysIn(params.value("drivers", std::string("NVMe")));
  if (drivers.empty()) return noData("no driver is named that must be direct");
  const auto done =
      runProgram(host, params.value("program", std::string(kProgram)), {"-p"}, kGdsSeconds);
  if (!done) return broken(done.error());
  const auto seen = parseGdsCheck(done->out);
  const auto strange = seen ? unknownOf(*seen, drivers) : std::string();
  Verdict verdict;
  if (!seen) {
    verdict = noData(fmt::format("gdscheck -p: {} (exit {}): {}", seen.error().str(), done->code,
                                 cutToBytes(done->err, 300)));
  } else if (!strange.empty()) {
    verdict = noData(fmt::format("gdscheck {} says of {}, and nothing follows from that",
                                 seen->release, strange));
  } else {
    auto wrong = shortcomings(*seen, drivers, gpus);
    if (done->code != 0) wrong.push_back(fmt::format("gdscheck ended with {}", done->code));
    verdict =
        wrong.empty()
            ? pass(fmt::format(
                  "GDS {}: {} direct on {} GPUs{}", seen->release, fmt::join(drivers, ", "), gpus,
                  seen->iommu.empty() || seen->iommu == "disabled"
                      ? ""
                      : fmt::format("; IOMMU {}: NVIDIA promises nothing with it", seen->iommu)))
            : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  }
  verdict.evidence = {{"output", done->out.substr(0, kEvidenceBytes)}};
  return verdict;
}

}  // namespace muster::validate
