#include "agent/tasks/tool_command.h"

#include "agent/protocol/json_reader.h"
#include "agent/protocol/messages.h"
#include "validate/checks/checks.h"

#include <iostream>
#include <iterator>

namespace muster::agent {
namespace {

constexpr std::uint64_t kMaxDeadlineSeconds = 24 * 3600;
constexpr std::size_t kMaxInputBytes = 4u << 20;

Result<std::string> driverVersion() { return validate::nvmlDriverVersion(); }

Result<std::string> gpus() {
  TRY(found, validate::listGpus());
  Hardware hardware;
  hardware.gpus = found;
  return toJson(hardware);
}

std::string input() { return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()}; }

Result<std::string> checks() {
  TRY(object, parseObject(input(), kMaxInputBytes, "checks"));
  JsonReader reader(object, "params");
  std::vector<validate::CheckRequest> requests;
  for (const auto& entry : reader.array("checks", kMaxChecks)) {
    JsonReader each(entry, "check");
    validate::CheckRequest request;
    request.id = each.text("id", kMaxNameBytes);
    request.params = each.object("params", kMaxProbes, true).dump();
    auto deadline = each.unsignedNumber("deadline_seconds", kMaxDeadlineSeconds, true);
    TRY_OK(each.finish());
    if (deadline > 0) request.deadline = std::chrono::seconds(deadline);
    requests.push_back(std::move(request));
  }
  TRY_OK(reader.finish());
  return toJson(validate::runChecks(requests));
}

Result<std::string> rdmaPair() { return toJson(std::vector<CheckResult>{validate::runRdmaPair(input())}); }

}  // namespace

int runToolCommand(const std::string& name) {
  const std::map<std::string, Result<std::string> (*)()> tools = {
      {"nvml-driver", driverVersion}, {"gpus", gpus}, {"checks", checks}, {"rdma-pair", rdmaPair}};
  auto tool = tools.find(name);
  if (tool == tools.end()) {
    std::cerr << "no such tool: " << name << "\n";
    return 2;
  }
  auto out = tool->second();
  if (!out) {
    std::cerr << out.error().str() << "\n";
    return 1;
  }
  std::cout << *out << std::endl;
  return 0;
}

}  // namespace muster::agent
