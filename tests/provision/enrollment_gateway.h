// SPDX-License-Identifier: Apache-2.0
// The gateway as Netboot sees it.
#pragma once

#include "gateway/gateway_server.h"

namespace muster::provision {

/// Only enrollment ids; nothing else of the gateway is used by Netboot.
class EnrollmentGateway final : public gateway::GatewayServer {
 public:
  int issued = 0;
  std::vector<io::Route> routes() override { return {}; }
  Result<std::string> openEnrollment(const NodeName& node, const Mac&) override {
    return "enrollment-" + node.str() + "-" + std::to_string(++issued);
  }
  std::optional<gateway::AgentState> state(const NodeName&) const override { return std::nullopt; }
  Async<gateway::AgentState> waitFor(NodeName, std::optional<wire::Mode>, std::string,
                                     std::chrono::seconds) override {
    co_return fail(ErrorCode::Timeout, "");
  }
  Result<void> submit(const NodeName&, wire::AgentTask) override {
    return fail(ErrorCode::Unavailable, "");
  }
  std::optional<wire::AgentTaskReport> report(const NodeName&, const std::string&) const override {
    return std::nullopt;
  }
  Task<std::optional<wire::AgentTaskReport>> reportWithin(NodeName, std::string,
                                                          std::chrono::milliseconds) override {
    co_return std::nullopt;
  }
  void abandon(const NodeName&, const std::string&) override {}
  Async<wire::AgentTaskReport> runTask(NodeName, wire::AgentTask) override {
    co_return fail(ErrorCode::Unavailable, "");
  }
};

}  // namespace muster::provision
