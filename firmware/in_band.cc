// SPDX-License-Identifier: Apache-2.0
#include "firmware/in_band.h"

#include "base/async/deadline.h"
#include "base/io/crypto.h"
#include "base/json_output.h"
#include "firmware/files.h"
#include "inventory/model/firmware.h"
#include "wire/task_params.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace muster::firmware {

using namespace std::chrono_literals;
using inventory::FirmwareBaseline;
using inventory::FirmwareComponent;

namespace {

constexpr auto kListLimit = 2min;  ///< fwupd looks at every bus
constexpr std::chrono::seconds kInstallLimit{
    3 * 3600};  ///< of all devices of a component; each tool has its own

std::string silent(const NodeName& node) {
  return fmt::format("the agent of {} does not answer; these devices are reached by it alone",
                     node.str());
}

/// Of these versions one that is not the wanted one, the lowest; the wanted one when all are.
std::string shownOf(const std::vector<std::string>& versions, const std::string& wanted) {
  const std::string* worst = nullptr;
  for (const auto& version : versions)
    if (!lifecycle::matches(wanted, version) &&
        (!worst || inventory::compareVersions(version, *worst) < 0))
      worst = &version;
  return worst ? *worst : versions.front();
}

}  // namespace

bool hasInBand(const FirmwareBaseline& baseline) {
  return std::any_of(baseline.components.begin(), baseline.components.end(), inventory::isInBand);
}

std::vector<bmc::FirmwareItem> inBandItems(const FirmwareBaseline& baseline,
                                           const Result<wire::DeviceFirmware>& seen) {
  std::vector<bmc::FirmwareItem> items;
  for (const auto& component : baseline.components) {
    const auto device = inventory::inBandDevice(component);
    if (!device) continue;
    bmc::FirmwareItem item{component.name, "", true, ""};
    if (!seen) {
      item.unreadable = seen.error().str();
    } else if (const auto trouble = seen->troubles.find(std::string(device->way));
               trouble != seen->troubles.end()) {
      item.unreadable = trouble->second;  // a device that cannot be read may be one of these
    } else {
      std::vector<std::string> versions;
      for (const auto& each : seen->devices)
        if (wire::fits(each, device->way, device->match)) versions.push_back(each.version);
      if (versions.empty())
        item.unreadable = fmt::format("no device fits {}", component.device);
      else
        item.version = shownOf(versions, component.version);
    }
    items.push_back(std::move(item));
  }
  return items;
}

Async<wire::DeviceFirmware> listInBand(gateway::AgentGateway& agents, Clock& clock, NodeName node,
                                       const FirmwareBaseline& baseline) {
  if (!agents.state(node)) co_return fail(ErrorCode::Unavailable, silent(node));
  std::set<std::string> ways;
  for (const auto& component : baseline.components)
    if (const auto device = inventory::inBandDevice(component)) ways.emplace(device->way);
  const wire::ListFirmwareParams params{{ways.begin(), ways.end()}};
  const wire::AgentTask task{"firmware." + node.str() + "." + io::randomToken(9),
                             wire::TaskKind::ListFirmware, toJson(params), kListLimit};
  auto ask = agents.runTask(node, task);
  CO_TRY(report,
         co_await withDeadline<wire::AgentTaskReport>(
             clock, kListLimit, "the firmware of the devices of " + node.str(), std::move(ask)));
  co_return wire::parseDeviceFirmware(report.result);
}

Async<std::vector<bmc::FirmwareItem>> InBand::firmware() {
  CO_TRY(items, co_await inner_.firmware());
  const auto seen = co_await listInBand(agents_, clock_, scope_.node, baseline_);
  for (auto& item : inBandItems(baseline_, seen)) {
    std::erase_if(items,
                  [&item](const bmc::FirmwareItem& other) { return other.name == item.name; });
    items.push_back(std::move(item));
  }
  co_return items;
}

/// Everything that an intent may have ordered: the ids follow from the baseline.
std::vector<InBand::Order> InBand::orders() const {
  std::vector<Order> out;
  for (const auto& component : baseline_.components) {
    if (!inventory::isInBand(component) || component.file.empty()) continue;
    auto images = component.intermediate;
    images.push_back({component.version, component.file, component.sha256});
    for (auto& image : images) {
      auto id = fmt::format("{}/{}={}", scope_.intent, component.name, image.version);
      out.push_back({&component, std::move(image), std::move(id)});
    }
  }
  return out;
}

Result<void> InBand::submit(const Order& order) {
  const auto device = *inventory::inBandDevice(*order.component);
  const wire::FirmwareTask what{std::string(device.way), device.match, order.image.version,
                                scope_.image_url + imagePath(order.image), order.image.sha256};
  return agents_.submit(
      scope_.node, {order.id, wire::TaskKind::InstallFirmware, wire::toJson(what), kInstallLimit});
}

/// Nothing can be lost between order and answer: the order is numbered, and given again whenever
/// the agent does not know it.
Async<std::string> InBand::startUpdate(bmc::FirmwareUpdate update) {
  const auto* component = baseline_.find(update.component);
  if (!component || !inventory::isInBand(*component)) {
    co_return co_await inner_.startUpdate(std::move(update));
  }
  if (scope_.image_url.empty())
    co_return fail(ErrorCode::InvalidInput,
                   "nothing serves firmware files here; run this from a controller");
  if (!agents_.state(scope_.node)) co_return fail(ErrorCode::Conflict, silent(scope_.node));
  for (const auto& order : orders()) {
    if (order.component != component || order.image.sha256 != update.sha256 ||
        order.image.file != update.file)
      continue;
    CO_TRY_OK(submit(order));
    co_return std::string(kAgentTask) + order.id;
  }
  co_return fail(ErrorCode::InvalidInput,
                 fmt::format("the baseline does not declare {} for {} any more; plan again",
                             update.file.string(), update.component));
}

Async<bmc::TaskStatus> InBand::task(std::string uri) {
  if (!uri.starts_with(kAgentTask)) {
    co_return co_await inner_.task(std::move(uri));
  }
  const auto id = uri.substr(kAgentTask.size());
  auto report = agents_.report(scope_.node, id);
  if (!report) {
    if (!agents_.state(scope_.node)) co_return fail(ErrorCode::Unavailable, silent(scope_.node));
    for (const auto& order : orders())
      if (order.id == id) CO_TRY_OK(submit(order));
    report = agents_.report(scope_.node, id);
  }
  if (!report) co_return bmc::TaskStatus{bmc::TaskState::Running, 0, "handed to the agent"};
  const auto state = report->phase == wire::TaskPhase::Done     ? bmc::TaskState::Completed
                     : report->phase == wire::TaskPhase::Failed ? bmc::TaskState::Failed
                                                                : bmc::TaskState::Running;
  co_return bmc::TaskStatus{state, std::max(0.0, report->fraction), report->text};
}

Async<bmc::TaskList> InBand::tasks() {
  CO_TRY(tasks, co_await inner_.tasks());
  for (const auto& order : orders()) {
    const auto report = agents_.report(scope_.node, order.id);
    if (report)
      (wire::isFinished(report->phase) ? tasks.finished : tasks.running)
          .push_back(std::string(kAgentTask) + order.id);
  }
  const auto* current = baseline_.find(scope_.current);
  if (current && inventory::isInBand(*current)) tasks.keeps_finished = true;
  co_return tasks;
}

Async<void> InBand::commitImage(std::string component) {
  const auto* found = baseline_.find(component);
  if (found && inventory::isInBand(*found))
    co_return fail(ErrorCode::NotFound, component + " is no component of the BMC");
  co_return co_await inner_.commitImage(std::move(component));
}

Async<std::string> InBand::previousImage(std::string component) {
  const auto* found = baseline_.find(component);
  if (found && inventory::isInBand(*found))
    co_return fail(ErrorCode::NotFound, "the node's agent keeps no previous image of " + component);
  co_return co_await inner_.previousImage(std::move(component));
}

}  // namespace muster::firmware
