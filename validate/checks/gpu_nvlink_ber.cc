// SPDX-License-Identifier: Apache-2.0
// Bit error rates of NVLinks, link by link. Generations before 5 know none: they count CRC errors,
// which gpu.nvlink evaluates.
//
// Source of the limits: NVIDIA DCGM 4.6, which fails a GPU beyond an effective rate of 1e-12, and
// for any symbol that was wrong after correction. The rate before correction and the histogram of
// corrected symbols are not evaluated: a link in good health has both.
#include "validate/checks/expectations.h"
#include "validate/checks/gpu_snapshot.h"

namespace muster::validate {
namespace {

constexpr double kMaxEffective = 1e-12, kMaxSymbol = 0;
constexpr double kRounding = 1 + 1e-9;  ///< 1·10^−12 is not quite 1e-12

struct Limits {
  double effective, symbol;
};
struct Rate {
  std::string_view name;
  std::optional<double> NvLinkBer::* of;
  double most;
};

bool hasNoLinks(const GpuHealth& gpu) {
  const auto* sku = Skus::builtIn().find(gpu.identity.model);
  return !sku || !sku->expect.contains("nvlinks");
}

Verdict evaluate(const std::vector<NvLinkBer>& links, const Limits& limits) {
  const Rate rates[] = {{"effective", &NvLinkBer::effective, limits.effective},
                        {"symbol", &NvLinkBer::symbol, limits.symbol}};
  Verdict verdict = pass("");
  std::string bad, seen;
  for (const auto& rate : rates) {
    double worst = 0;
    for (const auto& link : links) {
      const auto value = link.*rate.of;
      if (!value)
        return noData(fmt::format(
            "NVML gives no {} bit error rate of NVLink {}: a driver of branch 570 or later does",
            rate.name, link.link));
      worst = std::max(worst, *value);
      if (*value > rate.most * kRounding)
        bad += fmt::format("{}NVLink {}: {} bit error rate {:.0e}, {:.0e} is allowed",
                           bad.empty() ? "" : "; ", link.link, rate.name, *value, rate.most);
    }
    seen += fmt::format("{}{} {:.0e}", seen.empty() ? "" : ", ", rate.name, worst);
    verdict.values[fmt::format("nvlink_{}_ber", rate.name)] = worst;
  }
  verdict.text = fmt::format("{} NVLinks, bit error rates at most: {}", links.size(), seen);
  if (!bad.empty()) verdict.status = wire::CheckStatus::Fail, verdict.text = std::move(bad);
  return verdict;
}

}  // namespace

Verdict checkGpuNvlinkBer(const nlohmann::json& params, const Host&) {
  const Limits limits{params.value("max_effective_ber", kMaxEffective),
                      params.value("max_symbol_ber", kMaxSymbol)};
  if (!(limits.effective >= 0 && limits.effective < 1 && limits.symbol >= 0 && limits.symbol < 1))
    return checkError("a bit error rate lies between 0 and 1");
  const auto look = readGpus();
  if (!look) return noData(look.error().str());
  const auto nvml = Nvml::open();
  if (!nvml) return noData(nvml.error().str());
  unsigned index = 0;
  return everyGpu(
      *look,
      [&](const GpuHealth& gpu) {
        const auto links = nvml->nvLinkBer(index++);
        if (!links) return noData(links.error().str());
        if (!gpu.nvlinks_up) return noData("NVML gives no NVLink state");
        if (links->empty())
          return hasNoLinks(gpu) ? pass("a card without NVLink") : noData("no NVLink is up");
        if (gpu.nvlink_counts_crc)
          return pass(
              "NVLink before generation 5 has no bit error rate: gpu.nvlink counts its "
              "errors");
        return evaluate(*links, limits);
      },
      "NVLinks without errors that remain");
}

}  // namespace muster::validate
