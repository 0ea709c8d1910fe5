// SPDX-License-Identifier: Apache-2.0
// Validations: gates that run again on working nodes, asked for and looked at by who tests nodes.
// Each is a run (api/run_routes.cc); here it has its nodes' results, and who has a part of the site
// asks for and sees those of that part.
#include "api/answers.h"
#include "api/kept_answer.h"
#include "api/run_json.h"
#include "api/run_orders.h"
#include "api/schema.h"
#include "app/nodes/measurements.h"
#include "app/validation/gate_plan.h"
#include "base/json_input.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"
#include "validate/listed_checks.h"

#include <memory>

namespace muster::api {
namespace {

using lifecycle::Run;
using lifecycle::RunKind;

constexpr std::int64_t kDefaultRuns = 100, kMaxRuns = 1'000;
constexpr std::int64_t kMaxReportDays = 3'660, kMostFalseAlarms = 1'000;
constexpr double kLeastFalseAlarms = 0.001;
const Field kId{"id", Kind::Text, "A run of kind validate", true};

/// Of the whole site also those that cannot be read, or whose nodes have left the inventory.
bool isInScope(app::Session& session, const Call& call, const Run& run) {
  if (call.scope.isSite()) return true;
  const auto names = inventory::expandHostlist(run.apply.nodes);
  return names && !names->empty() && std::ranges::all_of(*names, [&](const std::string& name) {
           return nodeOf(session, call, name).has_value();
         });
}

Reply ask(SiteReader& reader, const Call& call) {
  TRY(made, submitRun(reader, call, RunKind::Validate));
  return Answer{
      202, runJson(made), {{"Location", std::string(kBasePath) + "/validations/" + made.id}}};
}

Reply validations(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(store, app::openRunStore(reader.options()));
  const auto limit = static_cast<std::size_t>(call.integer("limit", kDefaultRuns));
  TRY(found, app::listRuns(*store, {.open_only = call.flag("open"),
                                    .limit = limit,
                                    .before = call.integer("cursor", 0),
                                    .kind = RunKind::Validate}));
  auto items = nlohmann::json::array();
  TRY_OK(app::markVoidWords(reader.store(), found));
  for (const auto& run : found)
    if (isInScope(*session, call, run)) items.push_back(runJson(run));
  Answer out{200, {{"items", std::move(items)}}};
  if (found.size() == limit) out.body["next"] = std::to_string(found.back().first_event);
  return out;
}

/// "pass:SCOPE" says "pass".
std::string resultOf(const lifecycle::Fact* fact, WallTime asked_at) {
  if (!fact || fact->observed_at < asked_at) return "pending";
  return fact->value.substr(0, fact->value.find(':'));
}

Reply validation(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(store, app::openRunStore(reader.options()));
  TRY(run, app::readRun(*store, call.text("id")));
  if (run.kind != RunKind::Validate || !isInScope(*session, call, run))
    return std::unexpected(Problem(404, "not-found",
                                   fmt::format("there is no validation {}", call.text("id")),
                                   "GET /validations lists them"));
  std::vector<NodeName> nodes;
  if (const auto names = inventory::expandHostlist(run.apply.nodes))
    for (const auto& name : *names)
      if (session->cluster().findNode(NodeName(name))) nodes.emplace_back(name);
  auto results = nlohmann::json::array();
  if (const auto gates = app::gatesOf(session->cluster(), nodes, run.validate.gates)) {
    TRY(facts, reader.store().facts());
    for (const auto& node : nodes)
      for (const auto& gate : *gates) {
        if (!app::hasGate(session->cluster(), node, gate)) continue;
        const auto* fact = facts.find(lifecycle::Subject(node), gate);
        auto& result =
            results.emplace_back(nlohmann::json{{"node", node.str()},
                                                {"gate", app::nameOfGate(gate)},
                                                {"result", resultOf(fact, run.asked_at)}});
        if (fact && fact->observed_at >= run.asked_at)
          result["at"] = muster::toString(fact->observed_at);
      }
  }
  TRY(shown, app::withVoidWords(reader.store(), std::move(run)));
  return Answer{200, {{"run", runJson(shown)}, {"results", std::move(results)}}};
}

Reply checks(SiteReader&, const Call&) {
  auto items = nlohmann::json::array();
  for (const auto& row : validate::listedChecks())
    items.push_back({{"id", row.id},
                     {"group", row.group},
                     {"level", row.level},
                     {"what", row.what},
                     {"needs", row.needs},
                     {"units", row.units},
                     {"expected_from", row.source},
                     {"what_to_do", row.advice}});
  return list(std::move(items));
}

/// Written out, because what it is made from is large.
struct KeptReport {
  std::map<app::ReportFormat, std::string> documents;
  std::string left_out;
};
using KeptReports = Kept<KeptReport>;

/// All measurements of so many days are compared, which takes seconds at a large site.
Result<KeptReport> reportOf(const app::Options& options, const Call& call, KeptReports& kept) {
  app::MeasurementsRequest request;
  request.days = static_cast<int>(call.integer("days", request.days));
  if (!call.text("false_alarms").empty())
    request.false_alarms = std::max(call.number("false_alarms"), kLeastFalseAlarms);
  const auto key = fmt::format("{} {}", request.days, request.false_alarms);
  if (const auto* known = kept.find(key)) return *known;
  const auto began = std::chrono::steady_clock::now();
  TRY(report, app::reportMeasurements(options, request));
  KeptReport out;
  using enum app::ReportFormat;
  for (const auto format : {Html, Json, Junit})
    out.documents.emplace(format, app::toText(report, format));
  out.left_out = std::move(report.left_out);
  return kept.keep(key, began, std::move(out));
}

Reply measurementsReport(const app::Options& options, const Call& call, KeptReports& kept) {
  TRY(report, reportOf(options, call, kept));
  TRY(json, parseJson(report.documents.at(app::ReportFormat::Json), kKeptJson));
  json["left_out"] = report.left_out;
  return Answer{200, std::move(json)};
}

/// A page of a browser that shows it may do nothing in the name of who looks at it.
constexpr std::string_view kReportPolicy =
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'";

Reply measurementsDocument(const app::Options& options, const Call& call, KeptReports& kept,
                           app::ReportFormat format) {
  TRY(report, reportOf(options, call, kept));
  const bool is_page = format == app::ReportFormat::Html;
  Answer out{200, nullptr};
  out.headers["Content-Type"] =
      is_page ? "text/html; charset=utf-8" : "application/xml; charset=utf-8";
  if (is_page) out.headers["Content-Security-Policy"] = std::string(kReportPolicy);
  out.plain = report.documents.at(format);
  return out;
}

void addMeasurements(std::vector<ApiRoute>& routes) {
  const auto kept = std::make_shared<KeptReports>();
  const auto add = [&](std::string path, std::string_view summary, nlohmann::json schema,
                       std::string_view content_type, auto answer) {
    routes.push_back(
        {"GET",
         std::move(path),
         Verb::Look,
         Reach::Site,
         summary,
         {},
         {{"days", Kind::Integer, "Of this many days", false, 1, kMaxReportDays},
          {"false_alarms", Kind::Number, "How many the report may be expected to hold; default: 1",
           false, 0, kMostFalseAlarms}},
         {},
         std::move(schema),
         200,
         {}});
    routes.back().content_type = content_type;
    routes.back().beside = std::move(answer);
  };
  const auto document = [kept](app::ReportFormat format) {
    return [kept, format](const app::Options& options, const Call& call) {
      return measurementsDocument(options, call, *kept, format);
    };
  };
  add("/measurements", "What all gates and isolations have measured, each value against its peers",
      refTo("MeasurementsReport"), "application/json",
      [kept](const app::Options& options, const Call& call) {
        return measurementsReport(options, call, *kept);
      });
  add("/measurements/report.html", "The same as one page for people, which fetches nothing",
      nullptr, "text/html", document(app::ReportFormat::Html));
  add("/measurements/junit.xml", "The same as results of tests (JUnit), a case a node", nullptr,
      "application/xml", document(app::ReportFormat::Junit));
}

}  // namespace

void addValidationRoutes(std::vector<ApiRoute>& routes) {
  routes.push_back(
      {"GET",
       "/validations",
       Verb::Look,
       Reach::Scoped,
       "Runs of gates, newest first",
       {},
       {{"open", Kind::Boolean, "true: only those that are not over"},
        {"limit", Kind::Integer, "Runs that are looked at", false, 1, kMaxRuns},
        {"cursor", Kind::Integer, "`next` of the page before", false, 0, kAnySequence}},
       {},
       listOf("Run"),
       200,
       validations});
  routes.push_back({"GET",
                    "/validations/{id}",
                    Verb::Look,
                    Reach::Scoped,
                    "How far a run of gates is, and what each gate has said of each node",
                    {kId},
                    {},
                    {},
                    refTo("Validation"),
                    200,
                    validation});
  routes.push_back(
      {"POST",
       "/validations",
       Verb::Validate,
       Reach::Scoped,
       "Run gates again, also those that have passed",
       {},
       {},
       {{"nodes", Kind::Hostlist, "On these", true},
        {"gates", Kind::Texts, "Names; default: all of the nodes' profiles"},
        {"synchronized_load", Kind::Boolean, "Each rack's nodes begin a gate at one moment"},
        kConfirm,
        kAfterRestart,
        kMeantInventory},
       refTo("Run"),
       202,
       ask});
  routes.back().knows_its_key = true;
  routes.push_back(lookRoute("/checks", Reach::Scoped,
                             "Every check: what it looks at, where what it expects comes from, and "
                             "what to do when it fails",
                             listOf("Check"), checks));
  addMeasurements(routes);
}

}  // namespace muster::api
