// The gateway as Netboot sees it.
#pragma once

#include "gateway/gateway_server.h"

namespace muster::provision {

/// Only enrolment ids; nothing else of the gateway is used by Netboot.
class EnrolmentGateway final : public agent::GatewayServer {
 public:
  int issued = 0;
  std::vector<io::Route> routes() override { return {}; }
  Result<std::string> openEnrolment(const NodeName& node, const Mac&) override {
    return "enrolment-" + node.str() + "-" + std::to_string(++issued);
  }
  std::optional<agent::AgentState> state(const NodeName&) const override { return std::nullopt; }
  Async<agent::AgentState> waitFor(NodeName, std::optional<agent::Mode>, std::string, std::chrono::seconds) override {
    co_return fail(ErrorCode::Timeout, "");
  }
  Result<void> submit(const NodeName&, agent::AgentTask) override { return fail(ErrorCode::Unavailable, ""); }
  std::optional<agent::AgentTaskReport> report(const NodeName&, const std::string&) const override { return std::nullopt; }
  Task<std::optional<agent::AgentTaskReport>> reportWithin(NodeName, std::string, std::chrono::milliseconds) override { co_return std::nullopt; }
  Async<agent::AgentTaskReport> runTask(NodeName, agent::AgentTask) override { co_return fail(ErrorCode::Unavailable, ""); }
};

}  // namespace muster::provision
