// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/rdma_devices.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::validate {

Verdict countRdmaDevices(const std::filesystem::path& folder, int expected) {
  std::vector<std::string> devices;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    devices.push_back(entry.path().filename().string());
  std::sort(devices.begin(), devices.end());
  const auto seen = static_cast<int>(devices.size());
  Verdict verdict = seen == expected
                        ? pass(fmt::format("{} RDMA NICs", seen))
                        : failed(fmt::format("{} RDMA NICs seen, {} expected", seen, expected));
  verdict.values = {{"rdma_devices", static_cast<double>(seen)}};
  verdict.evidence = {{"devices", devices}, {"folder", folder.string()}};
  return verdict;
}

Verdict checkRdmaCount(const nlohmann::json& params, const Host& host) {
  return countRdmaDevices(host.root / "sys/class/infiniband", params.at("count").get<int>());
}

bool isSoftRdma(std::string_view device) {
  return device.starts_with("rxe") || device.starts_with("siw");
}

Verdict checkRdmaPorts(const nlohmann::json& params, const Host& host) {
  const double most_errors = params.value("max_errors", 0.0);
  const auto rails = params.value("devices", nlohmann::json::object());
  const std::filesystem::path folder = "sys/class/infiniband";
  std::vector<std::string> wrong;
  Verdict verdict = noData("the kernel has no RDMA device");
  std::size_t ports = 0;
  const std::string layer = params.value("link_layer", "");
  for (const auto& [device, expected] : rails.items())
    if (host.names(folder / device / "ports").empty())
      wrong.push_back(fmt::format("{} is not there", device));
  for (const auto& device : host.names(folder)) {
    if (!rails.empty() && !rails.contains(device)) continue;  // on none of the fabrics
    const auto& expected = rails.empty() ? params : rails.at(device);
    const auto own_layer = expected.value("link_layer", "");
    for (const auto& port : host.names(folder / device / "ports")) {
      const auto at = folder / device / "ports" / port;
      const auto state = host.line(at / "state"), rate = host.line(at / "rate");
      const auto gbits = numberIn(rate.substr(0, rate.find(' ')));
      if (!own_layer.empty() && !isSoftRdma(device) && host.line(at / "link_layer") != own_layer) {
        if (rails.empty()) continue;  // of another network: its cable may well be out
        wrong.push_back(fmt::format("{}/{} is of {}, its fabric of {}", device, port,
                                    host.line(at / "link_layer"), own_layer));
      }
      const double floor =
          isSoftRdma(device) ? 0 : params.value("min_gbits", expected.value("min_gbits", 0.0));
      ++ports;
      if (state.find("ACTIVE") == std::string::npos)
        wrong.push_back(fmt::format("{}/{} is '{}', not active", device, port, state));
      if (!gbits || rate.find("Gb/sec") == std::string::npos)
        wrong.push_back(fmt::format("{}/{} gives no rate in Gb/sec: '{}'", device, port, rate));
      else if (!(*gbits >= floor))
        wrong.push_back(
            fmt::format("{}/{} runs at {} Gb/s, expected {:.0f}", device, port, *gbits, floor));
      for (const char* counter : {"symbol_error", "link_error_recovery", "port_rcv_errors",
                                  "local_link_integrity_errors", "excessive_buffer_overrun_errors"})
        if (const auto errors = numberIn(host.line(at / "counters" / counter));
            errors && *errors > most_errors)
          wrong.push_back(fmt::format("{}/{} counts {} {}", device, port, *errors, counter));
      if (gbits) verdict.values[device + ".port" + port + "_gbits"] = *gbits;
    }
  }
  if (ports == 0 && !layer.empty() && !host.names(folder).empty())
    verdict.text = fmt::format("no RDMA port here is of {}", layer);
  if (ports == 0 && wrong.empty()) return verdict;
  verdict.status = wrong.empty() ? wire::CheckStatus::Pass : wire::CheckStatus::Fail;
  verdict.text = wrong.empty() ? fmt::format("{} ports active, none with errors", ports)
                               : fmt::format("{}", fmt::join(wrong, "; "));
  return verdict;
}

}  // namespace muster::validate
