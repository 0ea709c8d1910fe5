// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/erase_disks.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/task_reason.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

namespace muster::agent {
namespace {

constexpr std::size_t kMaxSerialBytes = 4096;
constexpr std::chrono::seconds kReportTime{
    60};  ///< before the deadline: what is told then is lost, and with it which disks are erased

/// The serial that this machine's own firmware tells; empty when it tells none.
std::string machineSerial(const std::filesystem::path& root) {
  std::string text =
      io::readFile(root / "sys/class/dmi/id/product_serial", kMaxSerialBytes).value_or("");
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  return text;
}

Result<EraseReport> eraseHere(const wire::EraseParams& params, const std::filesystem::path& root,
                              EraseTools tools, const TaskContextPtr& context, Clock& clock,
                              std::chrono::steady_clock::time_point ends) {
  if (!tools.pause)
    tools.pause = [](std::chrono::seconds pause) { std::this_thread::sleep_for(pause); };
  tools.progress = [context](double fraction, const std::string& text) {
    context->progress(fraction, text);
  };
  tools.cancelled = [context, &clock, ends] {
    return context->cancelled() || clock.steady() >= ends;
  };
  tools.now_seconds = [&clock] {
    return std::chrono::duration<double>(clock.steady().time_since_epoch()).count();
  };
  return eraseDisks(params, listDisks(root), machineSerial(root), tools);
}

Async<nlohmann::json> erase(TaskTools tools, EraseTools erase_tools, nlohmann::json json,
                            TaskContextPtr context) {
  auto parsed = wire::parseEraseParams(jsonText(json));
  if (!parsed) co_return wire::untouched(std::move(parsed).error());
  const wire::EraseParams& params = *parsed;
  Clock* clock = &tools.clock;
  const auto ends =
      clock->steady() + context->deadline() - std::min(kReportTime, context->deadline() / 10);
  std::function<Result<EraseReport>()> work = [params, root = tools.root, erase_tools, context,
                                               clock, ends] {
    return eraseHere(params, root, erase_tools, context, *clock, ends);
  };
  CO_TRY(report, co_await offloadFor<EraseReport>(tools.workers, context, std::move(work)));
  co_return jsonOrNone(report.json(), kKeptJson);
}

}  // namespace

TaskHandler eraseHandler(TaskTools tools, std::function<EraseTools()> make_tools) {
  return
      [tools, make_tools = std::move(make_tools)](nlohmann::json params, TaskContextPtr context) {
        return erase(tools, make_tools(), std::move(params), std::move(context));
      };
}

}  // namespace muster::agent
