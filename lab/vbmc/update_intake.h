// SPDX-License-Identifier: Apache-2.0
// How images come to a virtual BMC: every vendor's way of an upload, what it wants to be told with
// it, and what refuses one. Accepted is what becomes a task and a job (update_jobs.h).
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

class UpdateIntake {
 public:
  explicit UpdateIntake(BmcRuntime& bmc) : bmc_(bmc) {}

  /// Nullopt: this BMC takes no image there, nor an order about one.
  std::optional<io::ServerResponse> post(const io::ServerRequest& request, const std::string& path);
  /// iDRAC: what the job would have done at the next restart is not done.
  io::ServerResponse deleteJob(const std::string& path);

 private:
  io::ServerResponse acceptUpload(const io::ServerRequest& request);
  io::ServerResponse acceptUrl(const io::ServerRequest& request);
  io::ServerResponse acceptReady(const io::ServerRequest& request);
  io::ServerResponse acceptForm(const io::ServerRequest& request);
  std::optional<io::ServerResponse> collectPiece(std::string_view parameters, std::string& file,
                                                 bool is_signed);
  io::ServerResponse startVerified();
  io::ServerResponse updateFromPrevious(const io::ServerRequest& request);
  io::ServerResponse commitImage(const io::ServerRequest& request);
  io::ServerResponse begin(Job job);
  UpdateFault drawFault();
  std::optional<io::ServerResponse> refusalBy(UpdateFault fault);
  std::optional<io::ServerResponse> takeOemParameters(const nlohmann::json& parameters,
                                                      Job& job) const;

  BmcRuntime& bmc_;
  std::uint64_t last_ready_ = 0;
  std::string pieces_tag_, pieces_;  ///< of a file that comes in several
  int pieces_taken_ = 0;
};

}  // namespace muster::lab::vbmc
