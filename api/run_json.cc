// SPDX-License-Identifier: Apache-2.0
#include "api/run_json.h"

#include "api/answers.h"
#include "lifecycle/model/json.h"
#include "lifecycle/runs/run.h"

#include <nlohmann/json.hpp>

namespace muster::api {
namespace {

nlohmann::json approvalsJson(const lifecycle::Run& run) {
  auto out = nlohmann::json::array();
  for (const auto& each : run.approvals)
    out.push_back({{"principal", each.by.principal},
                   {"person", personOf(each.by)},
                   {"way", each.by.way},
                   {"address", each.by.address},
                   {"at", muster::toString(each.at)},
                   {"plan_hash", each.plan_hash},
                   {"confirmation", each.confirmation},
                   {"void_because", each.void_because}});
  return out;
}

nlohmann::json overridesJson(const lifecycle::Run& run) {
  auto out = nlohmann::json::array();
  for (const auto& each : run.overrides) {
    out.push_back({{"principal", each.by.principal},
                   {"way", each.by.way},
                   {"address", each.by.address},
                   {"at", muster::toString(each.at)},
                   {"plan_hash", each.plan_hash},
                   {"against", toString(each.against)},
                   {"reason", each.reason},
                   {"acknowledged_by", each.acknowledged_by},
                   {"void_because", each.void_because}});
    if (each.acknowledged_at != WallTime{})
      out.back()["acknowledged_at"] = muster::toString(each.acknowledged_at);
  }
  return out;
}

}  // namespace

nlohmann::json runJson(const lifecycle::Run& run) {
  auto stamps = nlohmann::json::array();
  for (const auto& each : run.stamps)
    stamps.push_back({{"state", toString(each.state)},
                      {"reason", toString(each.reason)},
                      {"at", muster::toString(each.at)},
                      {"by", each.by}});
  const auto& progress = run.progress;
  nlohmann::json out = {{"id", run.id},
                        {"kind", toString(run.kind)},
                        {"nodes", run.apply.nodes},
                        {"confirm", run.apply.confirm},
                        {"command", run.apply.command},
                        {"after_restart", toString(run.after_restart)},
                        {"state", toString(run.state)},
                        {"reason", toString(run.reason)},
                        {"text", run.text},
                        {"is_over", isEnd(run.state)},
                        {"order", toString(run.order)},
                        {"ordered_by", run.ordered_by},
                        {"asked_by",
                         {{"principal", run.asked_by.principal},
                          {"person", personOf(run.asked_by)},
                          {"way", run.asked_by.way},
                          {"address", run.asked_by.address}}},
                        {"asked_at", muster::toString(run.asked_at)},
                        {"changed_at", muster::toString(run.changedAt())},
                        {"worked_on_by", run.worked_on_by},
                        {"inventory_digest", run.inventory_digest},
                        {"plan_hash", run.plan_hash},
                        {"subjects", run.subjects},
                        {"approvals_needed", run.approvals_needed},
                        {"approvals", approvalsJson(run)},
                        {"overrides", overridesJson(run)},
                        {"progress",
                         {{"rounds", progress.rounds},
                          {"planned", progress.planned},
                          {"done", progress.done},
                          {"failed", progress.failed},
                          {"blocked", progress.blocked},
                          {"skipped", progress.skipped},
                          {"held", progress.held}}},
                        {"problems", run.problems},
                        {"stamps", std::move(stamps)},
                        {"first_event", run.first_event},
                        {"last_event", run.last_event}};
  if (run.planned_at != WallTime{}) out["planned_at"] = muster::toString(run.planned_at);
  if (run.waits_until != WallTime{}) out["waits_until"] = muster::toString(run.waits_until);
  if (!run.unreadable.empty()) out["unreadable"] = run.unreadable;
  if (run.impact) out["impact"] = impactJson(*run.impact);
  if (run.kind == lifecycle::RunKind::Rollout)
    out["rollout"] = {{"id", run.rollout.id},
                      {"back", run.rollout.back},
                      {"driver", run.rollout.driver},
                      {"wipe_reason", run.rollout.wipe_reason}};
  if (run.kind == lifecycle::RunKind::Validate)
    out["validate"] = {{"gates", run.validate.gates},
                       {"synchronized_load", run.validate.synchronized_load}};
  if (run.kind == lifecycle::RunKind::Isolate)
    out["isolate"] = {{"engine", run.isolate.engine},
                      {"min_gbps", run.isolate.min_gbps},
                      {"seed", run.isolate.seed},
                      {"until", run.isolate.until.empty() ? "cleared" : run.isolate.until}};
  if (run.kind == lifecycle::RunKind::FirmwareRetry)
    out["firmware_retry"] = {{"reason", run.firmware_retry.reason}};
  if (run.kind == lifecycle::RunKind::ImageBuild)
    out["image_build"] = {{"image", run.image_build.image}, {"over", run.image_build.over}};
  if (run.kind == lifecycle::RunKind::Erase)
    out["erase"] = {{"disks", run.erase.disks}, {"reason", run.erase.reason}};
  return out;
}

}  // namespace muster::api
