// SPDX-License-Identifier: Apache-2.0
// What only `nvidia-smi -q -x` shows of the GPUs: modes, processes that were left behind, SRAM
// errors, the memory's temperature. A word that is missing or "N/A" where the GPU must have one is
// no pass.
//
// Source: nvidia-smi's XML of drivers 470 to 580 as public captures show it; the fields' meaning is
// that of nvidia-smi(1) and of NVIDIA's "GPU Memory Error Management".
#include "validate/checks/expectations.h"
#include "validate/checks/external_program.h"
#include "validate/checks/smi_xml.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>

namespace muster::validate {
namespace {

constexpr double kSmiSeconds = 60;
constexpr double kIdleMemoryMib = 2048;  ///< that a driver without processes may hold. Own choice:
                                         ///< captures of idle GPUs show up to some 700 MiB
constexpr double kMaxCorrected = 1000;   ///< errors since the driver was loaded. Own choice: NVIDIA
                                         ///< gives no limit for what ECC has corrected
constexpr double kMaxMemoryC = 95;       ///< where the GPU names no limit of its own
constexpr double kMemoryMarginC = 5;     ///< below its own limit, where it slows down

/// Boards with GDDR, of whose memory the driver tells no temperature ("N/A"); every other one has
/// HBM, which has a sensor. Source: NVIDIA's product briefs.
constexpr std::array kBoardsWithGddr{"A2",  "A10",  "A10G", "A16", "A40", "L4",    "L20",
                                     "L40", "L40S", "L40G", "T4",  "RTX", "Quadro"};

struct Gpu {
  std::string name;  ///< "GPU 3 (00000000:AB:00.0, serial 165…)"
  const XmlElement* xml;
};

struct Look {
  XmlElement root;
  std::vector<Gpu> gpus;
};

Result<Look> look(const nlohmann::json& params, const Host& host) {
  TRY(done, runProgram(host, "nvidia-smi", {"-q", "-x"}, kSmiSeconds));
  TRY(root, parseSmiXml(done.out));
  if (root.name != "nvidia_smi_log")
    return fail(ErrorCode::Corrupt, "nvidia-smi printed something else: " + root.name);
  Look out{std::move(root), {}};
  for (const auto* gpu : out.root.all("gpu"))
    out.gpus.push_back(
        {fmt::format("GPU {} ({}{}{})", out.gpus.size(), gpu->id,
                     gpu->textAt("serial").empty() ? "" : ", serial ", gpu->textAt("serial")),
         gpu});
  for (const char* identity : {"", "uuid"}) {
    std::set<std::string_view> seen;
    for (const auto& [name, xml] : out.gpus)
      if (const std::string_view own = *identity ? xml->textAt(identity) : xml->id;
          !own.empty() && !seen.insert(own).second)
        return fail(ErrorCode::Corrupt,
                    fmt::format("nvidia-smi shows {} twice, in the place of another one", own));
  }
  const auto expected = params.value("gpus", out.gpus.size());
  if (out.gpus.empty() || out.gpus.size() != expected)
    return fail(ErrorCode::NotFound,
                fmt::format("nvidia-smi shows {} of {} GPUs", out.gpus.size(), expected));
  if (const auto said = numberIn(out.root.textAt("attached_gpus"));
      said && *said != static_cast<double>(out.gpus.size()))
    return fail(ErrorCode::Corrupt, fmt::format("nvidia-smi says {} attached GPUs and shows {}",
                                                *said, out.gpus.size()));
  if (done.code != 0)
    return fail(ErrorCode::Unavailable, fmt::format("nvidia-smi ended with {}", done.code));
  return out;
}

/// "45 C", "512 MiB", "12" of the unit " C", " MiB", "": the number, from 0 on; none for "N/A" and
/// everything else.
std::optional<double> quantity(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  const auto number = numberIn(text.substr(0, text.size() - unit.size()));
  return number && *number >= 0 ? number : std::nullopt;
}

struct Found {
  std::vector<std::string> wrong;
  std::vector<std::string> noted;  ///< nothing is wrong with it, and whoever reads should know
};

/// One GPU after the other; each finding names its GPU.
Verdict eachGpu(const nlohmann::json& params, const Host& host, std::string good,
                const std::function<void(const Gpu&, Found&, Verdict&)>& evaluate) {
  const auto seen = look(params, host);
  if (!seen)
    return seen.error().code() == ErrorCode::Timeout ? broken(seen.error())
                                                     : noData(seen.error().str());
  Verdict verdict = pass("");
  std::vector<std::string> all, noted;
  for (const auto& gpu : seen->gpus) {
    Found found;
    evaluate(gpu, found, verdict);
    if (!found.wrong.empty())
      all.push_back(fmt::format("{}: {}", gpu.name, fmt::join(found.wrong, ", ")));
    if (!found.noted.empty())
      noted.push_back(fmt::format("{}: {}", gpu.name, fmt::join(found.noted, ", ")));
  }
  if (all.empty()) {
    noted.insert(noted.begin(), fmt::format("{} GPUs: {}", seen->gpus.size(), good));
    verdict.text = fmt::format("{}", fmt::join(noted, "; "));
  } else {
    verdict.status = wire::CheckStatus::Fail;
    verdict.text = fmt::format("{}", fmt::join(all, "; "));
  }
  return verdict;
}

std::string shown(std::string_view text) { return text.empty() ? "not shown" : std::string(text); }

void mustBe(const Gpu& gpu, std::string_view path, std::string_view what, std::string_view expected,
            std::vector<std::string>& wrong) {
  if (const auto is = gpu.xml->textAt(path); is != expected)
    wrong.push_back(fmt::format("{} is {}, expected {}", what, shown(is), expected));
}

}  // namespace

Verdict checkGpuSettings(const nlohmann::json& params, const Host& host) {
  const auto persistence = params.value("persistence", std::string("Enabled")),
             mig = params.value("mig", std::string("Disabled")),
             compute = params.value("compute_mode", std::string("Default")),
             ecc = params.value("ecc", std::string("Enabled"));
  return eachGpu(params, host, "modes as expected", [&](const Gpu& gpu, Found& found, Verdict&) {
    auto& wrong = found.wrong;
    mustBe(gpu, "persistence_mode", "persistence mode", persistence, wrong);
    mustBe(gpu, "compute_mode", "compute mode", compute, wrong);
    mustBe(gpu, "ecc_mode/current_ecc", "ECC", ecc, wrong);
    const auto mig_now = gpu.xml->textAt("mig_mode/current_mig");
    if (mig_now != mig && !(mig == "Disabled" && mig_now == "N/A"))
      wrong.push_back(fmt::format("MIG is {}, expected {}", shown(mig_now), mig));
    for (const auto& [now, next, what] :
         {std::tuple{"mig_mode/current_mig", "mig_mode/pending_mig", "MIG"},
          std::tuple{"ecc_mode/current_ecc", "ecc_mode/pending_ecc", "ECC"}})
      if (gpu.xml->textAt(now) != gpu.xml->textAt(next))
        wrong.push_back(
            fmt::format("{} becomes {} at the next reset", what, shown(gpu.xml->textAt(next))));
  });
}

Verdict checkGpuProcesses(const nlohmann::json& params, const Host& host) {
  const auto allowed = "," + params.value("allow", std::string()) + ",";
  const double most = params.value("max_used_mib", kIdleMemoryMib);
  return eachGpu(
      params, host, fmt::format("no process, no more than {} MiB in use", most),
      [&](const Gpu& gpu, Found& found, Verdict& verdict) {
        auto& wrong = found.wrong;
        const auto* processes = gpu.xml->find("processes");
        if (!processes || (!processes->text.empty() && processes->text != "None"))
          wrong.push_back("its processes are " + shown(processes ? processes->text : ""));
        if (!processes) return;
        for (const auto* each : processes->all("process_info")) {
          const auto path = each->textAt("process_name");
          // "[Not Found]" is a word of nvidia-smi for a process that it cannot see.
          const auto program = path.starts_with('[') ? path : path.substr(0, path.find(' '));
          const auto name =
              program.substr(program.rfind('/') == program.npos ? 0 : program.rfind('/') + 1);
          if (!name.empty() && allowed.find(fmt::format(",{},", name)) != std::string::npos)
            continue;
          wrong.push_back(fmt::format("process {} ({}, type {}) uses {}", each->textAt("pid"),
                                      shown(name).substr(0, 60), shown(each->textAt("type")),
                                      shown(each->textAt("used_memory"))));
        }
        const auto used = quantity(gpu.xml->textAt("fb_memory_usage/used"), " MiB");
        if (!used) {
          wrong.push_back("how much memory is in use is not shown");
          return;
        }
        auto& largest = verdict.values["used_mib"];
        largest = std::max(largest, *used);
        if (*used > most && processes->all("process_info").empty())
          wrong.push_back(
              fmt::format("{} MiB are in use and no process has them, at most {}", *used, most));
      });
}

Verdict checkGpuSramEcc(const nlohmann::json& params, const Host& host) {
  const double most = params.value("max_corrected", kMaxCorrected);
  return eachGpu(
      params, host,
      "no uncorrected error of SRAM or DRAM since the driver was loaded, nothing to repair",
      [&](const Gpu& gpu, Found& found, Verdict& verdict) {
        auto& wrong = found.wrong;
        // Before Ampere there is one number, and no threshold.
        const bool combined = gpu.xml->find("ecc_errors/volatile/sram_uncorrectable") != nullptr;
        const auto count = [&](const std::string& path, std::string_view what, double limit) {
          const auto errors = quantity(gpu.xml->textAt("ecc_errors/" + path), "");
          if (!errors)
            wrong.push_back(
                fmt::format("{} are {}", what, shown(gpu.xml->textAt("ecc_errors/" + path))));
          else if (*errors > limit)
            wrong.push_back(fmt::format("{} {}, at most {}", *errors, what, limit));
          if (errors) verdict.values[path] = std::max(verdict.values[path], *errors);
        };
        if (combined) {
          count("volatile/sram_uncorrectable", "uncorrected SRAM errors", 0);
        } else {
          count("volatile/sram_uncorrectable_parity", "uncorrected SRAM errors (parity)", 0);
          count("volatile/sram_uncorrectable_secded", "uncorrected SRAM errors (SEC-DED)", 0);
          mustBe(gpu, "ecc_errors/aggregate/sram_threshold_exceeded", "SRAM threshold exceeded",
                 "No", wrong);
          // How many of them are too many in a GPU's life is its threshold's word, not ours.
          double in_life = 0;
          for (const char* path : {"ecc_errors/aggregate/sram_uncorrectable_parity",
                                   "ecc_errors/aggregate/sram_uncorrectable_secded"})
            in_life += quantity(gpu.xml->textAt(path), "").value_or(0);
          if (in_life > 0)
            found.noted.push_back(fmt::format(
                "{} uncorrected SRAM errors in its life, below its threshold", in_life));
        }
        count("volatile/sram_correctable", "corrected SRAM errors", most);
        count("volatile/dram_correctable", "corrected DRAM errors", most);
        count("volatile/dram_uncorrectable", "uncorrected DRAM errors", 0);
        for (const char* path :
             {"ecc_errors/channel_repair_pending", "ecc_errors/tpc_repair_pending",
              "ecc_errors/unrepairable_memory", "remapped_rows/remapped_row_pending",
              "remapped_rows/remapped_row_failure", "retired_pages/pending_retirement",
              "retired_pages/pending_blacklist"})
          if (const auto* state = gpu.xml->find(path);
              state && state->text != "No" && state->text != "N/A")
            wrong.push_back(fmt::format("{} is {}", state->name, shown(state->text)));
        // Of drivers before gpu_recovery_action; from 570 on they say in words that they are
        // deprecated.
        for (const char* path :
             {"gpu_reset_status/reset_required", "gpu_reset_status/drain_and_reset_recommended"})
          if (gpu.xml->textAt(path) == "Yes")
            wrong.push_back(fmt::format("its driver says: {}", gpu.xml->find(path)->name));
        if (const auto* action = gpu.xml->find("gpu_recovery_action");
            action && action->text != "None" && action->text != "N/A")
          wrong.push_back("its driver asks for: " + shown(action->text));
      });
}

Verdict checkGpuMemoryTemperature(const nlohmann::json& params, const Host& host) {
  return eachGpu(
      params, host, "memory cool enough", [&](const Gpu& gpu, Found& found, Verdict& verdict) {
        auto& wrong = found.wrong;
        const auto at = gpu.xml->textAt("temperature/memory_temp");
        const auto celsius = quantity(at, " C");
        const auto is_this = [model = gpu.xml->textAt("product_name")](const char* board) {
          return namesModel(model, board);
        };
        if (at == "N/A" && std::ranges::any_of(kBoardsWithGddr, is_this)) {
          found.noted.push_back("GDDR memory, of which no temperature is told");
          return;
        }
        if (!celsius) {
          wrong.push_back("the memory's temperature is " + shown(at));
          return;
        }
        const auto own = quantity(gpu.xml->textAt("temperature/gpu_temp_max_mem_threshold"), " C");
        const double most =
            params.value("max_c", own ? *own - kMemoryMarginC : kMaxMemoryC - kMemoryMarginC);
        verdict.values["memory_c"] = std::max(verdict.values["memory_c"], *celsius);
        if (*celsius > most)
          wrong.push_back(fmt::format("the memory has {} C, at most {}", *celsius, most));
      });
}

}  // namespace muster::validate
