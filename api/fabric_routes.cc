// SPDX-License-Identifier: Apache-2.0
// The fabric: its levels and cables as declared, what the newest look at it has found, and what
// tests between nodes have measured. Nothing is discovered for an answer.
#include "api/answers.h"
#include "api/kept_answer.h"
#include "api/schema.h"
#include "app/controller/controller.h"
#include "app/fabric/fabric_cables.h"
#include "app/nodes/measurements.h"
#include "base/io/files.h"
#include "fabric/discovery/discovery.h"
#include "fabric/options.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/parse/hostlist.h"
#include "validate/report/report.h"

#include <algorithm>
#include <map>
#include <memory>

namespace muster::api {
namespace {

using app::FabricCable;

constexpr const char* kWhichFabric = "Its name; absent: the compute fabric";
constexpr std::size_t kMostRepairs = 100;
constexpr std::size_t kMaxEvidenceBytes = 64u << 20;

struct Look {
  std::string name;
  bool is_compute = true;
  std::vector<std::string> names;  ///< of all that can be asked for
  app::FabricView view;
  std::optional<fabric::KeptReport> diff, health;
};

/// The declaration expanded, which takes a second for 16,384 HCAs: for one inventory once.
struct KeptFabric {
  std::string digest;
  fabric::Topology topology;
  Kept<Look> look;
};
using KeptFabrics = std::map<std::string, KeptFabric>;  ///< by name, of this inventory alone

/// Of several the main one where none is named.
std::expected<const inventory::Fabric*, Problem> askedFabric(const inventory::Cluster& cluster,
                                                             const Call& call) {
  auto name = call.text("fabric");
  if (cluster.fabrics.empty())
    return std::unexpected(Problem(404, "not-found", "the inventory declares no fabric",
                                   "declare one: docs/fabric.md"));
  if (const auto managed = inventory::managedFabrics(cluster); name.empty() && !managed.empty())
    name = managed.front()->name;
  auto chosen = fabric::chosenFabric(cluster, name);
  if (!chosen && chosen.error().code() == ErrorCode::NotFound)
    return std::unexpected(
        Problem(404, "not-found", chosen.error().text(), "GET /fabric names them under fabrics"));
  if (!chosen) return std::unexpected(Problem(chosen.error()));
  return *chosen;
}

/// One of a fabric that the inventory called otherwise then says nothing of this one.
std::optional<fabric::KeptReport> reportOf(const std::filesystem::path& folder,
                                           fabric::KeptReportKind kind, const std::string& name) {
  auto kept = fabric::keptReport(folder, kind);
  if (kept && kept->report.contains("fabric") && kept->report["fabric"] != name &&
      kept->report["fabric"] != "")
    kept.reset();
  return kept;
}

std::expected<const Look*, Problem> lookAt(SiteReader& reader, const Call& call, KeptFabrics& all) {
  TRY(session, reader.session());
  const auto& cluster = session->cluster();
  TRY(fabric, askedFabric(cluster, call));
  std::erase_if(all, [&](const auto& one) { return !cluster.fabrics.contains(one.first); });
  auto& kept = all[fabric->name];
  if (const auto* known = kept.look.find(cluster.digest)) return known;
  const auto began = std::chrono::steady_clock::now();
  if (kept.digest != cluster.digest) {
    TRY(topology, fabric::declaredTopology(cluster, *fabric));
    kept.topology = std::move(topology);
    kept.digest = cluster.digest;
  }
  const auto folder =
      app::fabricOptions(reader.options(), session->lab, cluster, fabric->name).run_folder;
  Look out{fabric->name,
           fabric->purpose == inventory::FabricPurpose::Compute,
           {},
           {},
           reportOf(folder, fabric::KeptReportKind::Diff, fabric->name),
           reportOf(folder, fabric::KeptReportKind::Health, fabric->name)};
  for (const auto* each : inventory::managedFabrics(cluster)) out.names.push_back(each->name);
  out.view = app::fabricView(kept.topology, out.diff, out.health);
  return &kept.look.keep(cluster.digest, began, std::move(out));
}

nlohmann::json levelJson(const app::FabricLevel& level) {
  return {{"level", level.level},
          {"switches", inventory::foldHostlist(level.switches)},
          {"switches_count", level.switches.size()},
          {"cables", level.cables},
          {"deviating", level.deviating},
          {"bad", level.bad}};
}

nlohmann::json foundJson(const fabric::KeptReport& kept) {
  const auto& report = kept.report;
  auto repairs = nlohmann::json::array();
  for (const auto& repair : report.value("repairs", nlohmann::json::array()))
    if (repairs.size() < kMostRepairs) repairs.push_back(repair.value("text", ""));
  return {{"looked_at", muster::toString(kept.at)},
          {"error", report.value("error", "")},
          {"note", report.value("note", "")},
          {"devices", report.value("devices", std::size_t{0})},
          {"links", report.value("links", std::size_t{0})},
          {"deviations", report.value("deviations", nlohmann::json::array()).size()},
          {"excluded", report.value("excluded", nlohmann::json::array()).size()},
          {"repairs", std::move(repairs)}};
}

nlohmann::json healthJson(const fabric::KeptReport& kept) {
  std::map<std::string, std::size_t> grades;
  for (const auto& link : kept.report.value("links", nlohmann::json::array()))
    ++grades[link.value("grade", "unknown")];
  const auto window = kept.report.value("window_seconds", nlohmann::json::object());
  return {{"looked_at", muster::toString(kept.at)},
          {"error", kept.report.value("error", "")},
          {"window_s", window.value("longest", 0.0)},
          {"grades", grades},
          {"hints", kept.report.value("hints", nlohmann::json::array())}};
}

/// Of the newest isolation; nothing: there was none, or its evidence cannot be read.
std::optional<nlohmann::json> pairsJson(const std::filesystem::path& state) {
  const auto file = app::newestIsolation(state);
  if (file.empty()) return std::nullopt;
  const auto text = io::readFile(file, kMaxEvidenceBytes);
  const auto matrix = text ? validate::report::matrixOf(*text)
                           : Result<validate::report::Matrix>(fail(text.error()));
  if (!matrix) return std::nullopt;
  return nlohmann::json{
      {"title", matrix->title}, {"names", matrix->names}, {"shares", matrix->shares}};
}

nlohmann::json cableJson(const FabricCable& cable) {
  auto faults = nlohmann::json::array();
  for (const auto& each : cable.faults)
    faults.push_back({{"kind", each.kind},
                      {"declared", each.declared},
                      {"found", each.found},
                      {"repair", each.repair}});
  nlohmann::json out = {{"a", cable.a.node},
                        {"a_port", cable.a.number},
                        {"b", cable.b.node},
                        {"b_port", cable.b.number},
                        {"width_speed", cable.width_speed},
                        {"level", cable.level},
                        {"state", wordOf(cable.state)},
                        {"faults", std::move(faults)}};
  if (cable.health)
    out["health"] = {{"grade", cable.health->grade},
                     {"complaints", cable.health->complaints},
                     {"advice", cable.health->advice},
                     {"transceiver", cable.health->transceiver}};
  return out;
}

Reply fabric(SiteReader& reader, const Call& call, KeptFabrics& kept) {
  TRY(look, lookAt(reader, call, kept));
  auto levels = nlohmann::json::array();
  for (const auto& level : look->view.levels) levels.push_back(levelJson(level));
  const auto faulty = std::ranges::count_if(look->view.cables, &FabricCable::isFaulty);
  Answer out{200,
             {{"name", look->name},
              {"fabrics", look->names},
              {"switches", look->view.switches},
              {"hcas", look->view.hcas},
              {"cables", look->view.cables.size()},
              {"faulty", faulty},
              {"levels", std::move(levels)}}};
  if (look->diff) out.body["found"] = foundJson(*look->diff);
  if (look->health) out.body["health"] = healthJson(*look->health);
  if (auto pairs = look->is_compute ? pairsJson(reader.options().state) : std::nullopt)
    out.body["pairs"] = std::move(*pairs);
  return out;
}

/// "gpu001" chooses gpu001's HCAs and not those of gpu0010.
bool touches(const FabricCable& cable, const std::string& device) {
  return device.empty() || cable.a.node == device || cable.b.node == device ||
         fabric::hostOf(cable.a.node) == device || fabric::hostOf(cable.b.node) == device;
}

Reply cables(SiteReader& reader, const Call& call, KeptFabrics& kept) {
  TRY(look, lookAt(reader, call, kept));
  const auto device = call.text("device");
  const bool only_faulty = call.flag("faulty");
  std::vector<nlohmann::json> items;
  for (const auto& cable : look->view.cables)
    if (touches(cable, device) && (!only_faulty || cable.isFaulty()))
      items.push_back(cableJson(cable));
  return page(call, std::move(items));
}

}  // namespace

void addFabricRoutes(std::vector<ApiRoute>& routes) {
  auto kept = std::make_shared<KeptFabrics>();  // the routes' own, of the reader thread
  routes.push_back(
      {"GET",
       "/fabric",
       Verb::Look,
       Reach::Site,
       "A fabric as declared, as found at the last look, and as measured",
       {},
       {{"fabric", Kind::Text, kWhichFabric}},
       {},
       refTo("Fabric"),
       200,
       [kept](SiteReader& reader, const Call& call) { return fabric(reader, call, *kept); }});
  routes.push_back(
      {"GET",
       "/fabric/cables",
       Verb::Look,
       Reach::Site,
       "Its cables, with what to do about each",
       {},
       withPages({{"fabric", Kind::Text, kWhichFabric},
                  {"device", Kind::Text, "Only those of this switch, HCA or node"},
                  {"faulty", Kind::Boolean, "true: only those that deviate or have errors"}}),
       {},
       listOf("Cable"),
       200,
       [kept](SiteReader& reader, const Call& call) { return cables(reader, call, *kept); }});
}

}  // namespace muster::api
