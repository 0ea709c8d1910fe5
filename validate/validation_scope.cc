// SPDX-License-Identifier: Apache-2.0
#include "validate/validation_scope.h"

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/facet_table.h"
#include "validate/part_binding.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace muster::validate {
namespace {

using nlohmann::json;

/// Compact JSON with its keys in order, written straight into one text: a node's declaration is
/// asked for at each of its actions, and as a tree of values it took a fortieth of all that a
/// controller does.
class Text {
 public:
  Text& operator<<(std::string_view json) {
    out_ += json;
    return *this;
  }
  Text& quote(std::string_view text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    });
    if (plain)
      out_.append("\"").append(text).append("\"");
    else
      out_ += jsonText(json(text));
    return *this;
  }
  /// `write` writes one item.
  template <class Items, class Write>
  Text& each(std::string_view open, const Items& items, std::string_view close, Write write) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) out_ += ',';
      write(item);
    }
    out_ += close;
    return *this;
  }
  Text& list(const std::vector<std::string>& texts) {
    return each("[", texts, "]", [this](const auto& text) { quote(text); });
  }
  template <class Map>
  Text& object(const Map& texts) {
    return each("{", texts, "}",
                [this](const auto& entry) { quote(entry.first) << ":", quote(entry.second); });
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

void putExpectation(Text& out, const inventory::Expectation& expect) {
  const auto put = [&out](std::string_view key, const std::optional<int>& value,
                          std::string_view after) {
    if (value) out << key << std::to_string(*value) << after;
  };
  out << "{";
  put("\"cpus_min\":", expect.cpus_min, ",");
  (out << "\"gpu_model\":").quote(expect.gpu_model);
  put(",\"gpus\":", expect.gpus, ""), put(",\"memory_gib_min\":", expect.memory_gib_min, ""),
      put(",\"nics\":", expect.nics, "");
  out << "}";
}

void putDrivers(Text& out, const inventory::Cluster& cluster, const inventory::Profile& profile) {
  const std::set<std::string_view> names(profile.drivers.begin(), profile.drivers.end());
  out.each("{", names, "}", [&](std::string_view name) {
    const auto& driver = cluster.drivers.at(std::string(name));
    (out.quote(name) << ":{\"modules\":").list(driver.modules) << ",\"packages\":";
    (out.list(driver.packages) << ",\"verify\":").object(driver.verify) << "}";
  });
}

void putFirmware(Text& out, const inventory::Cluster& cluster, const inventory::Profile& profile) {
  std::map<std::string_view, std::string_view> versions;
  if (!profile.firmware.empty())
    for (const auto& component : cluster.firmware.at(profile.firmware).components)
      versions[component.name] = component.version;
  out.object(versions);
}

void putGates(Text& out, const inventory::Cluster& cluster, const inventory::Profile& profile) {
  const std::set<std::string_view> names(profile.gates.begin(), profile.gates.end());
  out.each("{", names, "}", [&](std::string_view name) {
    const auto& gate = cluster.gates.at(std::string(name));
    out.quote(name) << ":{";
    if (!gate.checks.empty()) out << "\"checks\":" << jsonText(json(gate.checks)) << ",";
    out << "\"isolate\":" << (gate.isolate ? "true" : "false")
        << ",\"level\":" << std::to_string(static_cast<int>(gate.level)) << ",\"on\":";
    out.list(gate.groups) << "}";
  });
}

lifecycle::Revalidation revalidationOf(const FacetName& facet) {
  const auto* row = lifecycle::findFacetRow(facet);
  return row ? row->revalidation : lifecycle::Revalidation::None;
}

}  // namespace

std::string declarationDigest(const inventory::Cluster& cluster, const inventory::Node& node) {
  const auto& profile = cluster.profileOf(node);
  Text out;
  putDrivers(out << "{\"drivers\":", cluster, profile);
  putExpectation(out << ",\"expect\":", profile.expect);
  (out << ",\"fabric\":").quote(profile.fabric);
  if (!profile.other_fabrics.empty())  // who has one fabric keeps its digest
    (out << ",\"fabrics\":").list(profile.other_fabrics);
  putFirmware(out << ",\"firmware\":", cluster, profile);
  putGates(out << ",\"gates\":", cluster, profile);
  (out << ",\"image\":").quote(profile.image);
  (out << ",\"node\":").quote(node.name.str());
  (out << ",\"profile\":").quote(profile.name) << "}";
  return io::sha256Hex(out.str());
}

std::string validationScopeHash(const inventory::Cluster& cluster, const inventory::Node& node,
                                const lifecycle::FactSet& facts) {
  const auto known = facts.of(lifecycle::Subject(node.name));
  std::map<std::string_view, std::string_view> counting;
  for (const auto& fact : known)
    if (revalidationOf(fact.facet) == lifecycle::Revalidation::Gates)
      counting[fact.facet.str()] = fact.value;
  Text scope;
  (scope << "{\"declaration\":").quote(declarationDigest(cluster, node));
  if (!counting.empty()) (scope << ",\"facts\":").object(counting);
  scope << "}";
  return io::sha256Hex(scope.str());
}

std::map<std::string, std::string> boundFacts(const inventory::CertificatePolicy& policy,
                                              const NodeName& node,
                                              const lifecycle::FactSet& facts) {
  return boundFacts(policy, facts.of(lifecycle::Subject(node)));
}

std::map<std::string, std::string> boundFacts(const inventory::CertificatePolicy& policy,
                                              const std::vector<lifecycle::Fact>& facts_of_node) {
  using lifecycle::Revalidation;
  std::map<std::string, std::string> bound;
  for (const auto& fact : facts_of_node) {
    const auto revalidation = revalidationOf(fact.facet);
    const bool counts = revalidation == Revalidation::Policy
                            ? onChangeOf(policy, fact.facet.str().substr(kPartPrefix.size())) !=
                                  inventory::PartChange::Nothing
                            : revalidation != Revalidation::None;
    if (counts) bound[fact.facet.str()] = fact.value;
  }
  return bound;
}

}  // namespace muster::validate
