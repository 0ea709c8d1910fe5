// SPDX-License-Identifier: Apache-2.0
#include "validate/part_binding.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

namespace muster::validate {
namespace {

using inventory::PartChange;

constexpr std::size_t kDigestDigits = 16;
constexpr std::size_t kMaxNamed = 8;  ///< parts that a message names

std::map<std::string, std::string> digestsOf(const std::vector<lifecycle::Fact>& facts) {
  std::map<std::string, std::string> out;
  for (const auto& fact : facts)
    if (fact.facet.str().starts_with(kPartPrefix))
      out[fact.facet.str().substr(kPartPrefix.size())] =
          io::sha256Hex(fact.value).substr(0, kDigestDigits);
  return out;
}

std::set<std::string> listOf(std::string_view text) {
  constexpr std::string_view kBetween = ", ";
  std::set<std::string> out;
  while (!text.empty()) {
    const auto end = text.find(kBetween);
    out.emplace(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kBetween.size());
  }
  return out;
}

/// Whether a gate is run again for such a change.
bool concerns(PartChange change, const inventory::Cluster& cluster,
              const inventory::Profile& profile, const std::string& gate) {
  if (change != PartChange::QuickGates) return change == PartChange::AllGates;
  const auto isQuick = [&cluster](const std::string& name) {
    const auto found = cluster.gates.find(name);
    return found != cluster.gates.end() && found->second.level == inventory::GateLevel::Quick;
  };
  return isQuick(gate) || std::none_of(profile.gates.begin(), profile.gates.end(), isQuick);
}

}  // namespace

PartChange onChangeOf(const inventory::CertificatePolicy& policy, std::string_view kind) {
  const auto& parts = policy.parts;
  if (kind == "hca") return parts.hca;
  if (kind == "dimm") return parts.dimm;
  if (kind == "nvswitch") return parts.nvswitch;
  if (kind == "nvme") return parts.nvme;
  if (kind == "bmc") return parts.bmc;
  return PartChange::AllGates;
}

std::string partsAtGate(const std::vector<lifecycle::Fact>& facts) {
  std::string out;
  for (const auto& [kind, digest] : digestsOf(facts))
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", kind, digest);
  return out.empty() ? "none" : out;
}

std::vector<std::string> changedPartsFor(const inventory::Cluster& cluster,
                                         const inventory::Node& node, const std::string& gate,
                                         const std::string& at_gate,
                                         const std::vector<lifecycle::Fact>& facts) {
  const auto now = digestsOf(facts);
  std::vector<std::string> changed;
  std::istringstream words(at_gate);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) continue;
    const auto kind = word.substr(0, equals);
    const auto found = now.find(kind);
    if (found != now.end() && found->second != word.substr(equals + 1) &&
        concerns(onChangeOf(*cluster.certificates, kind), cluster, cluster.profileOf(node), gate))
      changed.push_back(kind);
  }
  return changed;
}

bool sawKind(const std::string& at_gate, std::string_view kind) {
  std::istringstream words(at_gate);
  for (std::string word; words >> word;)
    if (word.substr(0, word.find('=')) == kind) return true;
  return false;
}

std::string partsDifference(std::string_view before, std::string_view now) {
  const auto was = listOf(before), is = listOf(now);
  std::vector<std::string> words;
  const auto put = [&words](const std::set<std::string>& from, const std::set<std::string>& to,
                            std::string_view what) {
    std::vector<std::string> only;
    std::set_difference(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(only));
    const auto count = only.size();
    only.resize(std::min(count, kMaxNamed));
    if (count > kMaxNamed) only.push_back(fmt::format("{} more", count - kMaxNamed));
    if (count > 0) words.push_back(fmt::format("{} {}", fmt::join(only, ", "), what));
  };
  put(was, is, "gone");
  put(is, was, "new");
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace muster::validate
