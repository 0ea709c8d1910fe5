// SPDX-License-Identifier: Apache-2.0
// The plan as JSON, its hash, and what makes it stale.
#include "lifecycle/model/plan.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/unread.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

using nlohmann::json;

constexpr const char* kPlanFormat = "muster-plan/1";
constexpr std::size_t kShownBytes =
    60;  ///< of a file's own words, in an error: they may be any length
constexpr std::size_t kPieceBytes = 64u << 10;  ///< a call of the library a piece, not three a fact
constexpr std::size_t kMaxStaleReasons =
    100;  ///< lines; a fleet that changed altogether needs no longer list

json withoutHash(const Plan& plan) {
  json policy = {{"only", json::array()}, {"wipe_allowed", json::array()}};
  for (const auto& subject : plan.policy.only) policy["only"].push_back(subject.str());
  for (const auto& node : plan.policy.wipe_allowed) policy["wipe_allowed"].push_back(node.str());
  json facts = json::object();
  for (const auto& [facet, value] : plan.facts_used)
    facts[facet.subject.str()][facet.facet.str()] = value;
  json actions = json::array();
  for (const auto& action : plan.actions) actions.push_back(toJson(action));
  return {{"format", kPlanFormat},
          {"inventory_digest", plan.inventory_digest},
          {"facts_digest", plan.facts_digest},
          {"policy", std::move(policy)},
          {"facts", std::move(facts)},
          {"actions", std::move(actions)}};
}

std::unexpected<Error> unreadable(std::string_view what) {
  return fail(ErrorCode::Corrupt, fmt::format("this is not a plan that can be carried out: {}; "
                                              "make it again with `muster plan --out FILE`",
                                              what));
}

const std::string* textOf(const json& source, const char* key) {
  auto it = source.find(key);
  return it == source.end() ? nullptr : it->get_ptr<const std::string*>();
}

Result<std::vector<std::string>> textsOf(const json& source, const char* key) {
  std::vector<std::string> out;
  auto it = source.find(key);
  if (it == source.end() || !it->is_array())
    return unreadable(fmt::format("'{}' is not a list", key));
  for (const auto& item : *it) {
    if (!item.is_string())
      return unreadable(fmt::format("'{}' holds something that is not text", key));
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<Policy> policyFromJson(const json& source) {
  auto it = source.find("policy");
  if (it == source.end() || !it->is_object()) return unreadable("'policy' is missing");
  Policy policy;
  TRY(only, textsOf(*it, "only"));
  TRY(wipe_allowed, textsOf(*it, "wipe_allowed"));
  for (auto& name : only) policy.only.insert(Subject::parse(std::move(name)));
  for (auto& name : wipe_allowed) policy.wipe_allowed.insert(NodeName(std::move(name)));
  return policy;
}

Result<std::map<FacetRef, std::string>> factsFromJson(const json& source) {
  std::map<FacetRef, std::string> out;
  auto it = source.find("facts");
  if (it == source.end() || !it->is_object()) return unreadable("'facts' is missing");
  for (const auto& [subject, facets] : it->items()) {
    if (!facets.is_object())
      return unreadable(
          fmt::format("the facts of '{}' are not an object", shortened(subject, kShownBytes)));
    for (const auto& [facet, value] : facets.items()) {
      if (!value.is_string())
        return unreadable(fmt::format("the fact '{}/{}' is not text",
                                      shortened(subject, kShownBytes),
                                      shortened(facet, kShownBytes)));
      out.emplace(FacetRef{Subject::parse(subject), FacetName(facet)}, value.get<std::string>());
    }
  }
  return out;
}

}  // namespace

std::string digestOf(const std::map<FacetRef, std::string>& facts) {
  io::Sha256 sha;
  std::string piece;
  auto add = [&piece](const std::string& text) {  // with its length, so that no two sets of facts
                                                  // share their bytes
    fmt::format_to(std::back_inserter(piece), "{}:", text.size());
    piece += text;
  };
  for (const auto& [facet, value] : facts) {
    add(facet.subject.str());
    add(facet.facet.str());
    add(value);
    if (piece.size() < kPieceBytes) continue;
    sha.update(piece.data(), piece.size());
    piece.clear();
  }
  sha.update(piece.data(), piece.size());
  return sha.finishHex();
}

/// The bytes of canonical(withoutHash(*this)), piece by piece: the tree of a fleet's plan takes
/// gigabytes. fromJson compares the two for every saved plan.
std::string Plan::hash() const {
  io::Sha256 sha;
  std::string piece;
  const auto flush = [&] {
    if (piece.size() < kPieceBytes) return;
    sha.update(piece.data(), piece.size());
    piece.clear();
  };
  const auto add = [&](std::string_view text) {
    piece += text;
    flush();
  };
  add(R"({"actions":[)");
  for (const auto& action : actions) {
    if (&action != &actions.front()) add(",");
    appendCanonical(piece, action);
    flush();
  }
  add(R"(],"facts":{)");
  const Subject* last = nullptr;
  for (const auto& [facet, value] : facts_used) {
    const bool is_next = !last || *last != facet.subject;
    if (last) add(is_next ? "}," : ",");
    if (is_next) {
      appendJsonText(piece, facet.subject.str());
      piece += ":{";
    }
    appendJsonText(piece, facet.facet.str());
    piece += ':';
    appendJsonText(piece, value);
    flush();
    last = &facet.subject;
  }
  add(last ? "}}," : "},");
  Plan rest;
  rest.inventory_digest = inventory_digest;
  rest.facts_digest = facts_digest;
  rest.policy = policy;
  auto others = withoutHash(rest);
  others.erase("actions");
  others.erase("facts");
  add(canonical(others).substr(1));
  sha.update(piece.data(), piece.size());
  return sha.finishHex();
}

std::string Plan::toJson() const {
  auto out = withoutHash(*this);
  out["hash"] = io::sha256Hex(canonical(out));  // of what is there before it
  return jsonText(out, 2) + "\n";
}

Result<Plan> Plan::fromJson(std::string_view text) {
  const auto parsed = parseJson(text, kFileJson);
  if (!parsed) return unreadable(parsed.error().text());
  const auto& source = *parsed;
  if (!source.is_object()) return unreadable("it is not a JSON object");
  const auto* format = textOf(source, "format");
  if (!format || *format != kPlanFormat)
    return unreadable(fmt::format("its format is '{}', not '{}'",
                                  format ? shortened(*format, kShownBytes) : "", kPlanFormat));
  const auto *inventory = textOf(source, "inventory_digest"),
             *facts_digest = textOf(source, "facts_digest"), *hash = textOf(source, "hash");
  if (!inventory || !facts_digest || !hash)
    return unreadable("'inventory_digest', 'facts_digest' or 'hash' is missing");
  Plan plan;
  plan.inventory_digest = *inventory;
  plan.facts_digest = *facts_digest;
  TRY(policy, policyFromJson(source));
  TRY(facts, factsFromJson(source));
  plan.policy = std::move(policy);
  plan.facts_used = std::move(facts);
  auto actions = source.find("actions");
  if (actions == source.end() || !actions->is_array()) return unreadable("'actions' is missing");
  for (const auto& item : *actions) {
    TRY(action, actionFromJson(item));
    plan.actions.push_back(std::move(action));
  }
  if (plan.hash() != *hash)
    return unreadable("its content does not fit its hash, so it was changed after it was made");
  return plan;
}

std::vector<std::string> staleReasons(const Plan& plan, const inventory::Cluster& cluster,
                                      const FactSet& facts) {
  std::vector<std::string> out;
  if (plan.inventory_digest != cluster.digest)
    out.push_back("the inventory has changed since the plan was made");
  std::map<FacetRef, std::string> now;
  std::set<Subject> subjects;
  for (const auto& action : plan.actions) subjects.insert(action.facet.subject);
  for (const auto& subject : subjects)
    for (auto& fact : facts.of(subject))
      if (!isUnreadFacet(fact.facet))
        now.emplace(FacetRef{fact.subject, fact.facet}, std::move(fact.value));
  for (const auto& [facet, was] : plan.facts_used) {
    const Fact* fact = facts.find(facet.subject, facet.facet);
    const std::string is = fact ? fact->value : "";
    now.erase(facet);
    if (is == was) continue;
    if (is.empty())
      out.push_back(fmt::format("{} was '{}', is not known any more", facet.str(), was));
    else if (was.empty())
      out.push_back(fmt::format("{} was not known, is '{}'", facet.str(), is));
    else
      out.push_back(fmt::format("{} was '{}', is '{}'", facet.str(), was, is));
  }
  for (const auto& [facet, value] : now)
    out.push_back(fmt::format("{} was not known, is '{}'", facet.str(), value));
  if (out.size() > kMaxStaleReasons) {
    const auto more = out.size() - kMaxStaleReasons;
    out.resize(kMaxStaleReasons);
    out.push_back(fmt::format("… and {} more", more));
  }
  return out;
}

}  // namespace muster::lifecycle
