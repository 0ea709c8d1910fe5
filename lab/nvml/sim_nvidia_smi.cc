// SPDX-License-Identifier: Apache-2.0
// nvidia-smi, simulated: the few words of it that muster's agent says, over the same file that the
// simulated NVML reads. A reset does to the file what it does to a GPU: volatile error counters go
// back to zero, pending rows are remapped.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

namespace {

using nlohmann::json;

constexpr const char* kConfigFile = "/etc/muster/sim-nvml.json";

std::string configFile() {
  const auto* named = std::getenv("MUSTER_SIM_NVML_CONFIG");
  return named && *named ? named : kConfigFile;
}

int refuse(const std::string& why) {
  std::cerr << why << '\n';
  return 1;
}

void printGpus(const json& gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (!gpus[i].value("lost", false))
      std::cout << i << ", " << gpus[i].value("bus_id", "00000000:00:00.0") << '\n';
}

void printApps(const json& gpus) {
  for (const auto& gpu : gpus) {
    const auto processes = gpu.value("processes", json::array());
    for (const auto& process : processes)
      std::cout << gpu.value("bus_id", "") << ", " << process.value("pid", 0) << ", "
                << process.value("name", "[Not Found]") << '\n';
  }
}

void reset(json& gpu) {
  if (gpu.contains("ecc")) {
    gpu["ecc"].erase("uncorrected_volatile");
    gpu["ecc"].erase("corrected_volatile");
  }
  if (gpu.contains("remapped_rows")) gpu["remapped_rows"].erase("pending");
  gpu.erase("throttle_reasons");
}

/// All of them, or the ones with these indexes.
int resetGpus(json& root, const std::string& indexes) {
  auto& gpus = root["gpus"];
  std::set<std::size_t> chosen;
  for (std::size_t at = 0; at < indexes.size();) {
    const auto comma = std::min(indexes.find(',', at), indexes.size());
    chosen.insert(static_cast<std::size_t>(
        std::strtoul(indexes.substr(at, comma - at).c_str(), nullptr, 10)));
    at = comma + 1;
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!indexes.empty() && !chosen.contains(i)) continue;
    const auto bus = gpus[i].value("bus_id", "");
    if (gpus[i].value("lost", false)) return refuse("GPU " + bus + " is lost");
    if (!gpus[i].value("processes", json::array()).empty())
      return refuse("GPU " + bus + " is currently in use by another process");
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!indexes.empty() && !chosen.contains(i)) continue;
    reset(gpus[i]);
    std::cout << "GPU " << gpus[i].value("bus_id", "") << " was successfully reset.\n";
  }
  const auto file = configFile(), part = file + ".part";
  std::ofstream(part) << root.dump(1);
  return std::rename(part.c_str(), file.c_str()) == 0 ? 0 : refuse("cannot write " + file);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  std::ifstream in(configFile());
  auto root = json::parse(in, nullptr, false);
  if (!root.is_object() || root.value("driver_not_loaded", false) || !root.contains("gpus"))
    return refuse("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
  if (verb.starts_with("--query-gpu=index,pci.bus_id")) return printGpus(root["gpus"]), 0;
  if (verb.starts_with("--query-compute-apps=gpu_bus_id,pid,process_name"))
    return printApps(root["gpus"]), 0;
  if (verb == "--gpu-reset" && argc == 2) return resetGpus(root, "");
  if (verb == "--gpu-reset" && argc == 4 && std::string(argv[2]) == "-i")
    return resetGpus(root, argv[3]);
  return refuse("the simulated nvidia-smi does not know " + verb);
}
