// SPDX-License-Identifier: Apache-2.0
// Two GPUs of the simulated NVML, which has the real library's ABI, and what a check says of them.
#pragma once

#include "tests/paths.h"
#include "validate/checks/check_row.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace muster::validate {

class SimulatedGpus : public testing::Test {
 protected:
  SimulatedGpus() {
    config_ =
        std::filesystem::temp_directory_path() / fmt::format("muster-sim-nvml-{}.json", ::getpid());
    setenv("MUSTER_NVML", (test::binFolder() / "../lib/libnvidia-ml.so.1").c_str(), 1);
    setenv("MUSTER_SIM_NVML_CONFIG", config_.c_str(), 1);
    for (int i = 0; i < 2; ++i)
      gpus_.push_back({{"name", "NVIDIA H100 80GB HBM3"},
                       {"uuid", fmt::format("GPU-{}", i)},
                       {"serial", fmt::format("S{}", i)},
                       {"bus_id", fmt::format("00000000:{:02X}:00.0", i + 1)}});
  }
  ~SimulatedGpus() override {
    std::filesystem::remove(config_);
    unsetenv("MUSTER_NVML");
    unsetenv("MUSTER_SIM_NVML_CONFIG");
  }
  Verdict check(std::string_view id, nlohmann::json params = nlohmann::json::object()) {
    std::ofstream(config_) << nlohmann::json{{"gpus", gpus_}}.dump();
    if (id == "gpu.throttle" && !params.contains("window_seconds")) params["window_seconds"] = 0;
    return runCheck(*findCheck(id), params, host_);
  }
  /// With a fault of the second GPU, which is gone afterwards.
  wire::CheckStatus with(std::string_view id, const nlohmann::json& fault,
                         nlohmann::json params = nlohmann::json::object()) {
    const auto before = gpus_;
    gpus_[1].update(fault);
    const auto verdict = check(id, std::move(params));
    gpus_ = before;
    return verdict.status;
  }

  std::filesystem::path config_;
  nlohmann::json gpus_ = nlohmann::json::array();
  Host host_;
};

}  // namespace muster::validate
