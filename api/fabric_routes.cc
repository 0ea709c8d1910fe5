// SPDX-License-Identifier: Apache-2.0
// The fabric: its levels and cables as declared, what the newest look at it has found, and what
// tests between nodes have measured. Nothing is discovered for an answer.
#include "api/answers.h"
#include "api/kept_answer.h"
#include "api/schema.h"
#include "app/fabric/fabric_look.h"
#include "app/nodes/measurements.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "validate/report/report.h"

#include <algorithm>
#include <map>
#include <memory>

namespace muster::api {
namespace {

using app::FabricCable;
using app::FabricLook;

constexpr const char* kWhichFabric = "Its name; absent: the compute fabric";
constexpr std::size_t kMaxEvidenceBytes = 64u << 20;

/// The declaration expanded, which takes a second for 16,384 HCAs: for one inventory once.
struct KeptFabric {
  std::string digest;
  std::shared_ptr<const fabric::Topology> topology;
  Kept<FabricLook> look;
};
using KeptFabrics = std::map<std::string, KeptFabric>;  ///< by name, of this inventory alone

std::expected<const FabricLook*, Problem> lookAt(SiteReader& reader, const Call& call,
                                                 KeptFabrics& all) {
  TRY(session, reader.session());
  const auto& cluster = session->cluster();
  const auto asked = app::fabricAskedFor(cluster, call.text("fabric"));
  if (!asked) return std::unexpected(Problem(asked.error()));
  const auto& fabric = **asked;
  std::erase_if(all, [&](const auto& one) { return !cluster.fabrics.contains(one.first); });
  auto& kept = all[fabric.name];
  if (const auto* known = kept.look.find(cluster.digest)) return known;
  const auto began = std::chrono::steady_clock::now();
  if (kept.digest != cluster.digest) {
    TRY(topology, app::declaredFabric(cluster, fabric));
    kept.topology = std::move(topology);
    kept.digest = cluster.digest;
  }
  return &kept.look.keep(
      cluster.digest, began,
      app::fabricLook(reader.options(), session->lab, cluster, fabric, *kept.topology));
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

Reply fabric(SiteReader& reader, const Call& call, KeptFabrics& kept) {
  TRY(look, lookAt(reader, call, kept));
  Answer out{200, toJson(app::summaryOf(*look))};
  if (auto pairs = look->is_compute ? pairsJson(reader.options().state) : std::nullopt)
    out.body["pairs"] = std::move(*pairs);
  return out;
}

Reply cables(SiteReader& reader, const Call& call, KeptFabrics& kept) {
  TRY(look, lookAt(reader, call, kept));
  const app::FabricCableFilter filter{"", call.text("device"), call.flag("faulty")};
  std::vector<nlohmann::json> items;
  for (const auto& cable : look->view.cables)
    if (filter.has(cable)) items.push_back(toJson(cable));
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
