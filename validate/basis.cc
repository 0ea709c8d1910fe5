#include "validate/basis.h"

#include "base/io/crypto.h"

#include <array>

namespace muster::validate {
namespace {

using nlohmann::json;

json expectation(const inventory::Expectation& expect) {
  json out{{"gpu_model", expect.gpu_model}};
  const auto put = [&out](const char* key, const std::optional<int>& value) {
    if (value) out[key] = *value;
  };
  put("gpus", expect.gpus), put("nics", expect.nics), put("memory_gib_min", expect.memory_gib_min), put("cpus_min", expect.cpus_min);
  return out;
}

json driversOf(const inventory::Cluster& cluster, const inventory::Profile& profile) {
  json out = json::object();
  for (const auto& name : profile.drivers) {
    const auto& driver = cluster.drivers.at(name);
    out[name] = {{"packages", driver.packages}, {"modules", driver.modules}, {"verify", driver.verify}};
  }
  return out;
}

json firmwareOf(const inventory::Cluster& cluster, const inventory::Profile& profile) {
  json out = json::object();
  if (profile.firmware.empty()) return out;
  for (const auto& component : cluster.firmware.at(profile.firmware).components) out[component.name] = component.version;
  return out;
}

json gatesOf(const inventory::Cluster& cluster, const inventory::Profile& profile) {
  json out = json::object();
  for (const auto& name : profile.gates) {
    const auto& gate = cluster.gates.at(name);
    out[name] = {{"level", static_cast<int>(gate.level)}, {"on", gate.on}, {"isolate", gate.isolate}};
    if (!gate.checks.empty()) out[name]["checks"] = gate.checks;
  }
  return out;
}

constexpr std::array<std::string_view, 6> kBoundPrefixes{"hw.", "image", "firmware.", "driver.", "storage.", "gate."};

}  // namespace

std::string declarationDigest(const inventory::Cluster& cluster, const inventory::Node& node) {
  const auto& profile = cluster.profileOf(node);
  const json declared{{"node", node.name.str()},   {"profile", profile.name},
                      {"image", profile.image},    {"expect", expectation(profile.expect)},
                      {"fabric", profile.fabric},  {"drivers", driversOf(cluster, profile)},
                      {"gates", gatesOf(cluster, profile)}, {"firmware", firmwareOf(cluster, profile)}};
  return io::sha256Hex(declared.dump());
}

std::string basisOf(const inventory::Cluster& cluster, const inventory::Node& node, const lifecycle::FactSet& facts) {
  json basis{{"declaration", declarationDigest(cluster, node)}};
  for (const auto& fact : facts.of(lifecycle::Subject(node.name)))
    if (fact.facet.str().starts_with("hw.") || fact.facet.str() == "image") basis["facts"][fact.facet.str()] = fact.value;
  return io::sha256Hex(basis.dump());
}

std::map<std::string, std::string> boundFacts(const NodeName& node, const lifecycle::FactSet& facts) {
  return boundFacts(facts.of(lifecycle::Subject(node)));
}

std::map<std::string, std::string> boundFacts(const std::vector<lifecycle::Fact>& facts_of_node) {
  std::map<std::string, std::string> bound;
  for (const auto& fact : facts_of_node)
    for (const auto prefix : kBoundPrefixes)
      if (fact.facet.str().starts_with(prefix)) bound[fact.facet.str()] = fact.value;
  return bound;
}

}  // namespace muster::validate
