// SPDX-License-Identifier: Apache-2.0
// The tables of a change: the inventory's own entries, and the rollout's policy.
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "inventory/model/node.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/formats.h"

namespace muster::inventory {
namespace {

constexpr int kMaxCanaries = 10'000;
constexpr int kMaxSoakMinutes = 7 * 24 * 60;

ObjectSpec make_profileChangeSpec() {
  return Table<ProfileChange>("profile-change", "profile",
                              "What becomes different of a profile; what is not named stays.")
      .optional("image", &ProfileChange::image, reference("images"), "The nodes' new system.")
      .optional("drivers", &ProfileChange::drivers, listOf(reference("drivers")),
                "All their drivers, in the order of installing.")
      .optional("firmware", &ProfileChange::firmware, reference("firmware"),
                "Their new firmware baseline.")
      .check([](ProfileChange& profile, const Value& map, Reader& reader) {
        if (!profile.image && !profile.drivers && !profile.firmware)
          reader.error(map, fmt::format("profile {} changes nothing", profile.name),
                       "name image, drivers or firmware");
      })
      .spec();
}
MUSTER_SPEC(profileChangeSpec)

ObjectSpec make_canarySpec() {
  return Table<Canary>("canary", "canary", "The first wave.")
      .optional("nodes", &Canary::nodes, integer(1, kMaxCanaries),
                "So many nodes, of as many racks as can be.")
      .optional("racks", &Canary::racks, integer(1, kMaxCanaries), "So many whole racks instead.")
      .check([](Canary&, const Value& map, Reader& reader) {
        if (map.find("nodes") && map.find("racks"))
          reader.error(*map.findKey("racks"), "canaries are counted in nodes or in racks",
                       "remove one of the two");
      })
      .spec();
}
MUSTER_SPEC(canarySpec)

ObjectSpec make_ceilingSpec() {
  return Table<Ceiling>(
             "ceiling", "ceiling",
             "How many nodes of one group may be out of work at once, for whatever reason.")
      .optional("nodes", &Ceiling::nodes, integer(1, 1'000'000), "So many nodes.")
      .optional("percent", &Ceiling::percent, integer(1, 100),
                "So many percent of its nodes, rounded down, but at least one node.")
      .check([](Ceiling& ceiling, const Value& map, Reader& reader) {
        if (!ceiling.nodes && !ceiling.percent)
          reader.error(map, "a ceiling needs a number", "write {nodes: 2} or {percent: 10}");
      })
      .spec();
}
MUSTER_SPEC(ceilingSpec)

ObjectSpec make_unavailabilitySpec() {
  return Table<Unavailability>("max-unavailable", "max_unavailable",
                               "Ceilings, each for every group of its kind.")
      .custom("pool", false, object(ceilingSpec), "Of one pool; 10 percent where nothing is said.",
              [](Unavailability& all, const Value& value, const Shape& shape, Reader& reader) {
                all.pool = {};
                readInto(all.pool, value, shape, reader);
              })
      .prints([](const Unavailability& all, const Printer& printer) -> nlohmann::json {
        return all.pool.limits() ? printObject(&all.pool, *ceilingSpec(), printer)
                                 : nlohmann::json();
      })
      .optional("rack", &Unavailability::rack, object(ceilingSpec), "Of one rack.")
      .optional("su", &Unavailability::su, object(ceilingSpec),
                "Of one scalable unit of a rail-optimized fabric.")
      .optional("leaf", &Unavailability::leaf, object(ceilingSpec),
                "Of the nodes on one leaf switch.")
      .spec();
}

}  // namespace
MUSTER_SPEC(unavailabilitySpec)
namespace {

ObjectSpec make_regressionSpec() {
  return Table<RegressionRule>("regression", "regression",
                               "When nodes count as slower than they were.")
      .optional("tolerated_percent", &RegressionRule::tolerated_percent, integer(0, 99),
                "Loss of a measured rate that is accepted.")
      .optional("tolerated_slower_percent", &RegressionRule::tolerated_slower_percent,
                integer(0, 1000), "Gain of a measured duration, as of booting, that is accepted.")
      .optional("confidence_percent", &RegressionRule::confidence_percent, integer(50, 99),
                "Of both answers, slower and not slower.")
      .optional("on_inconclusive", &RegressionRule::on_inconclusive, choice({"halt", "continue"}),
                "What to do while the measurements prove neither slower nor not slower.")
      .spec();
}
MUSTER_SPEC(regressionSpec)

void checkPolicy(RolloutPolicy& policy, const Value& map, Reader& reader) {
  const Value& waves = place(map, "waves");
  for (std::size_t i = 1; i < policy.waves.size() && i < waves.items.size(); ++i)
    if (policy.waves[i] <= policy.waves[i - 1])
      reader.error(waves.items[i], "each wave goes further than the one before",
                   "write percentages that grow, as [10, 50, 100]");
}

ObjectSpec make_rolloutSpec() {
  return Table<RolloutPolicy>("rollout", "rollout", "How carefully the change is rolled out.")
      .optional("canary", &RolloutPolicy::canary, object(canarySpec), "The first wave.")
      .custom("waves", false, listOf(integer(1, 100)),
              "The later waves: up to so many percent of all nodes. The last one is all.",
              [](RolloutPolicy& policy, const Value& value, const Shape& shape, Reader& reader) {
                policy.waves.clear();
                readInto(policy.waves, value, shape, reader);
              })
      .defaultIs("[10,50,100]")
      .optional("max_unavailable", &RolloutPolicy::max_unavailable, object(unavailabilitySpec),
                "Ceilings of nodes that are out of work.")
      .optional("max_failed_percent", &RolloutPolicy::max_failed_percent, integer(0, 100),
                "Of a wave's nodes; more stop the rollout.")
      .optional("regression", &RolloutPolicy::regression, object(regressionSpec),
                "When nodes count as slower than they were.")
      .optional("on_failure", &RolloutPolicy::on_failure, choice({"halt", "roll-back"}),
                "What a failed gate does.")
      .optional("soak_minutes", &RolloutPolicy::soak_minutes, integer(0, kMaxSoakMinutes),
                "After a wave has passed its gate: so long its nodes work in their pools, and are "
                "evaluated once more, before the next one begins.")
      .check(checkPolicy)
      .spec();
}
MUSTER_SPEC(rolloutSpec)

ObjectSpec make_changeSpec() {
  return Table<Change>("change", "change",
                       "What a rollout lays over the inventory, in the inventory's own words.")
      .optional("images", &Change::images, mapOf(object(imageSpec), kEntryName),
                "New systems, by name.")
      .optional("drivers", &Change::drivers, mapOf(object(driverSpec), kEntryName),
                "New drivers, by name.")
      .optional("firmware", &Change::firmware, mapOf(object(baselineSpec), kEntryName),
                "New firmware baselines, by name.")
      .required("profiles", &Change::profiles, mapOf(object(profileChangeSpec), kEntryName),
                "What their nodes get.")
      .optional("rollout", &Change::policy, object(rolloutSpec), "How carefully.")
      .spec();
}

}  // namespace

MUSTER_SPEC(changeSpec)

}  // namespace muster::inventory
