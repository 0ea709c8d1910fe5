// SPDX-License-Identifier: Apache-2.0
#include "api/remote_records.h"

#include "api/answer_members.h"
#include "api/record_values.h"
#include "api/server_connection.h"
#include "app/fabric/fabric_look.h"
#include "app/firmware/firmware_baselines.h"
#include "app/images.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/bmc_power.h"
#include "app/nodes/console.h"
#include "app/nodes/discovery.h"
#include "app/nodes/measurements.h"
#include "app/nodes/wipe.h"
#include "app/records/notifications.h"
#include "app/validation/certificates.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "lifecycle/audit/head.h"
#include "lifecycle/audit/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <thread>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMostHistory = 10'000;  ///< of one answer
constexpr std::size_t kMostParts = 64;        ///< of a recorded boot, 256 KiB each
constexpr std::chrono::minutes kBmcTimeout{20}, kReportTimeout{10};
constexpr std::chrono::milliseconds kBmcPoll{500};

std::string nodePath(const std::string& node) { return "/nodes/" + io::percentEncode(node); }

std::optional<bmc::PowerState> parsePower(const std::string& word) {
  if (word == "on") return bmc::PowerState::On;
  if (word == "off") return bmc::PowerState::Off;
  return std::nullopt;
}

std::optional<std::uint64_t> placeIn(const std::string& header) {
  std::uint64_t out = 0;
  const auto* end = header.data() + header.size();
  const auto [at, error] = std::from_chars(header.data(), end, out);
  return error == std::errc() && at == end && !header.empty() ? std::optional(out) : std::nullopt;
}

/// What a BMC has said to an order, or why that is not known.
Result<void> outcomeOf(const json& answer) {
  const auto state = textOf(answer, "state");
  if (state != "failed" && state != "unknown") return {};
  const auto text = textOf(answer, "text");
  return fail(
      Error(ErrorCode::Unavailable, text.empty() ? "what came of the order is not known" : text)
          .retryable(false));
}

}  // namespace

Result<lifecycle::History> RemoteRecords::history(const std::string& what, std::size_t limit) {
  TRY(answer,
      server_.get("/history", {{"what", what},
                               {"limit", std::to_string(std::clamp(limit, 1uz, kMostHistory))}}));
  return historyFrom(answer);
}

Result<std::vector<app::NodeUpgrade>> RemoteRecords::firmwareUpgrades(const std::string& nodes) {
  TRY(items, server_.list("/firmware/plan", {{"nodes", nodes}}));
  return madeOf(items, nodeUpgradeFrom);
}

Result<app::ImageList> RemoteRecords::images() {
  TRY(answer, server_.get("/images"));
  TRY(items, itemsOf(answer));
  TRY(images, madeOf(*items, keptImageFrom));
  Members read(answer, "images");
  app::ImageList out{std::move(images), read.texts("not_built"),
                     read.text("site_key_id", kMayBeAbsent)};
  return read.as(std::move(out));
}

Result<app::FabricSummary> RemoteRecords::fabric(const std::string& name) {
  TRY(answer, server_.get("/fabric", {{"fabric", name}}));
  return fabricSummaryFrom(answer);
}

Result<std::vector<app::FabricCable>> RemoteRecords::fabricCables(
    const app::FabricCableFilter& filter) {
  TRY(items, server_.list("/fabric/cables", {{"fabric", filter.fabric},
                                             {"device", filter.device},
                                             {"faulty", filter.faulty ? "true" : ""}}));
  return madeOf(items, fabricCableFrom);
}

Result<validate::Certificate> RemoteRecords::certificate(const std::string& node) {
  TRY(answer, server_.get(nodePath(node) + "/certificate"));
  return certificateFrom(std::move(answer));
}

Result<std::vector<app::CertificateVerdict>> RemoteRecords::verifyCertificates(
    const std::string& node) {
  TRY(items, server_.list("/certificates", {{"nodes", node}}));
  return madeOf(items, certificateVerdictFrom);
}

Result<app::Discovered> RemoteRecords::discovered() {
  TRY(items, server_.list("/discoveries", {}));
  TRY(machines, madeOf(items, discoveredMachineFrom));
  TRY(odd, server_.list("/discoveries/findings", {}));
  TRY(anomalies, madeOf(odd, anomalyFrom));
  return app::Discovered{std::move(machines), std::move(anomalies)};
}

Result<std::vector<app::BmcIdentity>> RemoteRecords::bmcIdentities(const std::string& nodes) {
  TRY(items, server_.list("/bmcs", {{"nodes", nodes}}));
  return madeOf(items, bmcIdentityFrom);
}

Result<std::vector<NodeName>> RemoteRecords::reset(const std::string& what,
                                                   const std::string& nodes) {
  TRY(answer, server_.post("/bmcs/" + what + "/reset", {{"nodes", nodes}}));
  TRY(items, itemsOf(answer));
  std::vector<NodeName> out;
  for (const auto& item : *items) out.emplace_back(textOf(item, "node"));
  return out;
}

Result<std::vector<NodeName>> RemoteRecords::resetBmcTrust(const std::string& nodes) {
  return reset("trust", nodes);
}

Result<std::vector<NodeName>> RemoteRecords::resetBmcAuth(const std::string& nodes) {
  return reset("auth", nodes);
}

Result<std::string> RemoteRecords::erasureReport(const NodeName& node) {
  TRY(answer, server_.get(nodePath(node.str()) + "/erasure"));
  return jsonText(answer);
}

Result<std::vector<bmc::KeptBoot>> RemoteRecords::recordedBoots(const NodeName& node) {
  TRY(answer, server_.get(nodePath(node.str()) + "/boots"));
  TRY(items, itemsOf(answer));
  return madeOf(*items, keptBootFrom);
}

Result<app::RecordedBoot> RemoteRecords::recordedBoot(const NodeName& node,
                                                      std::optional<int> number) {
  TRY(boots, recordedBoots(node));
  const auto found = number ? std::ranges::find(boots, *number, &bmc::KeptBoot::number)
                            : (boots.empty() ? boots.end() : std::prev(boots.end()));
  if (found == boots.end())
    return fail(app::noRecordedBoot(node, boots.empty() ? std::nullopt : number));
  app::RecordedBoot out{*found, {}};
  std::uint64_t after = 0;
  for (std::size_t part = 0; part < kMostParts; ++part) {
    TRY(answer, server_.send({}, fmt::format("{}/boots/{}/output?after={}", nodePath(node.str()),
                                             found->number, after)));
    const auto next = placeIn(answer.header("Muster-Next"));
    if (!next || *next < after)
      return fail(ErrorCode::Corrupt, server_.where() + " does not say how the recording goes on");
    if (answer.body.empty()) return out;
    out.output += answer.body;
    after = *next;
  }
  return out;  // one that is being written has no end yet
}

Result<lifecycle::AuditHead> RemoteRecords::auditHead() {
  TRY(answer, server_.get("/audit/head/signed"));
  TRY(heads, lifecycle::parseHeads(textOf(answer, "line")));
  return std::move(heads.front());
}

Result<std::vector<NodeName>> RemoteRecords::wipeGrants() {
  TRY(answer, server_.get("/wipe-grants"));
  TRY(items, itemsOf(answer));
  std::vector<NodeName> out;
  for (const auto& item : *items) out.emplace_back(textOf(item, "node"));
  return out;
}

Result<std::vector<app::PoolBreaker>> RemoteRecords::breakers() {
  TRY(answer, server_.get("/breakers"));
  TRY(items, itemsOf(answer));
  return madeOf(*items, poolBreakerFrom);
}

Result<std::vector<app::ReceiverState>> RemoteRecords::receivers() {
  TRY(answer, server_.get("/receivers"));
  TRY(items, itemsOf(answer));
  return madeOf(*items, receiverFrom);
}

/// Asked for at once, so that all are of one reading of the measurements: the server keeps it for a
/// moment.
Result<app::MeasuredFleet> RemoteRecords::measurements(
    const app::MeasurementsRequest& request, const std::vector<app::ReportFormat>& formats) {
  const ServerConnection::Query query{{"days", std::to_string(request.days)},
                                      {"false_alarms", fmt::format("{}", request.false_alarms)}};
  TRY(answer, server_.get("/measurements", query, kReportTimeout));
  TRY(out, measuredFleetFrom(answer));
  for (const auto format : formats) {
    if (format == app::ReportFormat::Json) {
      auto report = answer;
      report.erase("left_out");
      out.documents.emplace(format, jsonText(report, 1) + "\n");
      continue;
    }
    const auto* resource =
        format == app::ReportFormat::Html ? "/measurements/report.html" : "/measurements/junit.xml";
    TRY(document, server_.text(resource, query, kReportTimeout));
    out.documents.emplace(format, std::move(document));
  }
  return std::move(out);
}

Result<app::RevokedCertificate> RemoteRecords::revokeCertificate(const std::string& node,
                                                                 const std::string& reason) {
  TRY(answer, server_.post(nodePath(node) + "/certificate/revoke", {{"reason", reason}}));
  const bool is_older = !answer.is_object() || !answer.contains("had_certificate");
  return app::RevokedCertificate{textOf(answer, "list"),
                                 is_older || flagOf(answer, "had_certificate")};
}

Result<WallTime> RemoteRecords::overrideCertificate(const app::CertificateOverride& request) {
  TRY(answer, server_.post(nodePath(request.node) + "/certificate/override",
                           {{"reason", request.reason}, {"hours", request.hours}}));
  return parseWallTime(textOf(answer, "until"));
}

Result<std::vector<std::string>> RemoteRecords::approveMachines(
    const app::ApproveRequest& request) {
  json body = json::object();
  if (!request.machines.empty()) body["machines"] = request.machines;
  if (!request.matches.empty()) body["matches"] = request.matches;
  for (const auto& [name, value] :
       {std::pair("profile", &request.profile), std::pair("rack", &request.rack),
        std::pair("as", &request.as), std::pair("mac", &request.mac)})
    if (!value->empty()) body[name] = *value;
  TRY(answer, server_.post("/discoveries/approve", body));
  Members read(answer, "approval");
  auto approved = read.texts("approved");
  return read.as(std::move(approved));
}

Result<void> RemoteRecords::forgetMachines(const std::vector<std::string>& machines, bool all) {
  TRY_OK(server_.post("/discoveries/forget",
                      all ? json{{"all", true}} : json{{"machines", machines}}));
  return {};
}

Result<app::WipeGrant> RemoteRecords::grantWipe(const app::WipeRequest& request) {
  TRY(answer,
      server_.post("/wipe-grants",
                   {{"nodes", request.nodes}, {"reason", request.reason}, {"data", request.data}}));
  TRY(items, itemsOf(answer));
  app::WipeGrant out;
  for (const auto& item : *items) out.nodes.emplace_back(textOf(item, "node"));
  out.has_storage_sets = flagOf(answer, "has_storage_sets");
  return out;
}

Result<std::vector<app::PoolBreaker>> RemoteRecords::acknowledgeBreakers(
    const std::string& reason) {
  TRY(answer, server_.post("/breakers/acknowledge", {{"reason", reason}}));
  TRY(items, itemsOf(answer));
  return madeOf(*items, poolBreakerFrom);
}

Result<json> RemoteRecords::onceBmcAnswered(const std::string& resource, json answer) {
  const auto end = std::chrono::steady_clock::now() + kBmcTimeout;
  while (answer.is_object() && textOf(answer, "state") == "asking") {
    if (std::chrono::steady_clock::now() > end)
      return fail(ErrorCode::Timeout,
                  fmt::format("{} still asks the BMC after {} min; what comes of it is in its log",
                              server_.where(), kBmcTimeout.count()));
    std::this_thread::sleep_for(kBmcPoll);
    TRY(now, server_.get(resource));
    answer = std::move(now);
  }
  if (!answer.is_object() || textOf(answer, "state").empty())
    return fail(ErrorCode::Corrupt, server_.where() + " does not say what came of the order");
  return answer;
}

Result<app::PowerResult> RemoteRecords::power(
    const app::PowerRequest& request, const std::function<void(const std::string&)>& notice) {
  const auto& row = app::rowOf(request.command);
  const auto& node = request.node.str();
  if (row.is_disruptive && !request.confirmed)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{0} {1}; what would be done is shown on the host of the site alone. "
                            "To order it of {2}: --reason … --confirm {0}. Nothing was done",
                            node, row.effect, server_.where()));
  const auto resource = nodePath(node) + "/power";
  json body = {{"action", row.word}};
  if (!request.reason.empty()) body["reason"] = request.reason;
  if (request.confirmed) body["confirm_node"] = node;
  if (request.ipmi) body["ipmi"] = true;
  if (request.force) body["force"] = true;
  if (request.override_inventory) body["override"] = true;
  TRY(asked, server_.post(resource, body));
  TRY(answer, onceBmcAnswered(resource, std::move(asked)));
  if (textOf(answer, "action") != row.word)
    return fail(ErrorCode::Conflict,
                fmt::format("another order was given for {0} since; what came of this one: `muster "
                            "events {0}`",
                            node));
  TRY_OK(outcomeOf(answer));
  const auto text = textOf(answer, "text");
  const auto after = parsePower(textOf(answer, "power"));
  if (after && !text.empty()) notice(text);
  return app::PowerResult{"",
                          parsePower(textOf(answer, "before")).value_or(bmc::PowerState::Unknown),
                          after ? Result<bmc::PowerState>(*after)
                                : Result<bmc::PowerState>(fail(ErrorCode::Unavailable, text))};
}

Result<bool> RemoteRecords::locate(const NodeName& node, std::optional<bool> on) {
  const auto resource = nodePath(node.str()) + "/locator";
  TRY(asked, server_.post(resource, {{"led", !on ? "read" : *on ? "on" : "off"}}));
  TRY(answer, onceBmcAnswered(resource, std::move(asked)));
  TRY_OK(outcomeOf(answer));
  return textOf(answer, "state") == "on";
}

}  // namespace muster::api
