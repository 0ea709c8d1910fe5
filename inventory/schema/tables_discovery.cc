// SPDX-License-Identifier: Apache-2.0
// The tables of discovery: where to look for machines, and rules for what is found.
#include "inventory/model/credentials.h"
#include "inventory/model/discovery.h"
#include "inventory/parse/hostlist.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

namespace muster::inventory {

namespace {

constexpr TextFormat kMatchField{
    "a field of a machine: vendor, model, serial, uuid, mac, bmc, bmc_mac, gpus, gpu_model",
    "^(vendor|model|serial|uuid|mac|bmc|bmc_mac|gpus|gpu_model)$", "model"};
constexpr TextFormat kAnyGlob{"a glob", "", "*H100*"};
constexpr TextFormat kScanRange{
    "a range of addresses: FIRST-LAST, a network in CIDR form, or one address",
    R"(^(\d{1,3}\.){3}\d{1,3}(/\d{1,2}| ?- ?(\d{1,3}\.){3}\d{1,3})?$)", "10.20.250.1-10.20.250.64"};

void checkRule(DiscoveryRule& rule, const Value& map, Reader& reader) {
  if (rule.match.empty())
    reader.error(place(map, "match"), fmt::format("rule {} matches every machine", rule.name),
                 "name what tells these machines from others");
  if (!rule.names.empty())
    if (auto names = expandHostlist(rule.names); !names)
      reader.error(place(map, "names"), fmt::format("\"{}\" is no hostlist", shorten(rule.names)),
                   names.error().text());
}

ObjectSpec make_ruleSpec() {
  return Table<DiscoveryRule>("discovery-rule", "discovery rule",
                              "What becomes of machines that fit every glob.")
      .required("match", &DiscoveryRule::match, mapOf(text(kAnyGlob), kMatchField),
                "Field to glob; upper and lower case are alike.")
      .required(
          "profile", &DiscoveryRule::profile, reference("profiles"),
          "What they are; their rows go into the CSV that this profile's nodes are read from.")
      .optional(
          "names", &DiscoveryRule::names, text(kHostlist),
          "The names to give, in this order; absent: those of the nodes that have no row yet.")
      .optional("rack", &DiscoveryRule::rack, text(kText), "The rack to write.")
      .optional("approve", &DiscoveryRule::approve, boolean(), "Approve them without a person.")
      .printsAlways()
      .check(checkRule)
      .spec();
}
MUSTER_SPEC(ruleSpec)

ObjectSpec make_discoverySpec() {
  return Table<DiscoveryPolicy>(
             "discovery", "discovery",
             "How machines are found that nobody has declared yet; docs/discovery.md.")
      .optional("ranges", &DiscoveryPolicy::ranges, listOf(text(kScanRange)), "Where BMCs are.")
      .optional("credentials", &DiscoveryPolicy::credentials, listOf(reference("credentials")),
                "Accounts to try at an unknown BMC, in this order. One that a BMC refused is not "
                "tried there again.")
      .optional("rules", &DiscoveryPolicy::rules, mapOf(object(ruleSpec), kEntryName),
                "By name, looked at in the order of the names.")
      .printsAlways()
      .spec();
}

}  // namespace

MUSTER_SPEC(discoverySpec)

}  // namespace muster::inventory
