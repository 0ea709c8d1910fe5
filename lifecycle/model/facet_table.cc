// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/facet_table.h"

#include <algorithm>
#include <array>

namespace muster::lifecycle {
namespace {

using std::chrono::seconds;

constexpr bool kRecoverable = true, kNotRecoverable = false;

constexpr std::array kFacets = {
    FacetRow{"enrolled", "provision", Stage::Enrollment, seconds(3), seconds(180), kRecoverable,
             Revalidation::None,
             "does its BMC answer (`curl -k https://BMC/redfish/v1/`)? its address, account and "
             "cable are in the inventory"},
    FacetRow{"firmware.", "firmware", Stage::Firmware, seconds(0), seconds(0), kRecoverable,
             Revalidation::Certificate,
             "look at the update's task on the BMC; a BMC that no longer moves it needs a reset "
             "(`monitor.recovery: bmc-reset`)"},
    FacetRow{"firmware-left.", "firmware", Stage::Firmware, seconds(0), seconds(0), kNotRecoverable,
             Revalidation::None, "look at the update service of the BMC: what is staged there"},
    FacetRow{"firmware-staged.", "firmware", Stage::Firmware, seconds(0), seconds(0),
             kNotRecoverable, Revalidation::None,
             "look at the update service of the BMC: what is staged there"},
    FacetRow{"firmware-file.", "firmware"},
    FacetRow{"firmware-took.", "firmware"},
    FacetRow{"firmware-failed.", "firmware"},
    // Its observed value lists the declared attributes: bound, an edit of the inventory that
    // changes nothing on the node would void its certificate.
    FacetRow{"bios", "bios", Stage::Bios, seconds(480), seconds(2700), kRecoverable,
             Revalidation::None,
             "watch the node's console: settings are applied at its next start"},
    FacetRow{"raid", "raid", Stage::Raid, seconds(600), seconds(7200), kNotRecoverable,
             Revalidation::None,
             "look at the controller's task on the BMC and at the drives; `muster why` shows which "
             "were chosen. Some controllers work only while the machine runs"},
    FacetRow{"inspected", "provision", Stage::Inspection, seconds(90), seconds(1800), kRecoverable,
             Revalidation::None,
             "watch the node's console: does it boot from the network, does the RAM OS come up?"},
    FacetRow{"boot-medium", "provision", Stage::None, seconds(10), seconds(900), kRecoverable,
             Revalidation::None,
             "does its BMC answer? `muster bmc media NODE` shows its virtual drives"},
    FacetRow{"image", "provision", Stage::Image, seconds(300), seconds(5400), kNotRecoverable,
             Revalidation::Gates,
             "watch the node's console and its link: is the disk slow, is the image server far "
             "away?"},
    FacetRow{"os", "provision", Stage::Boot, seconds(60), seconds(1800), kRecoverable,
             Revalidation::None,
             "watch the node's console: the boot loader, the disk and the network of the installed "
             "system"},
    FacetRow{"driver.", "provision", Stage::Drivers, seconds(90), seconds(3600), kRecoverable,
             Revalidation::Certificate,
             "`muster events NODE` shows apt's last output; is the repository reachable from the "
             "node?"},
    // Bound, it would void the certificates that were signed before it was a facet; what the kernel
    // has is a check of the gate's.
    FacetRow{"network", "provision", Stage::Drivers, seconds(30), seconds(600), kRecoverable,
             Revalidation::None,
             "the node takes a network by which it does not reach its controller back by itself; "
             "`journalctl -u systemd-networkd` on the node says what it could not do"},
    FacetRow{"storage.", "storage", Stage::Storage, seconds(60), seconds(3600), kRecoverable,
             Revalidation::Certificate,
             "is the file server reachable from the node? `muster events NODE` shows the last "
             "output of mount"},
    FacetRow{"fabric.", "fabric", Stage::Fabric, seconds(20), seconds(1800), kRecoverable,
             Revalidation::None,
             "look at opensm's log and at the cables that `muster fabric diff` names"},
    FacetRow{"gate.", "validate", Stage::Gates, seconds(0), seconds(0), kNotRecoverable,
             Revalidation::Certificate,
             "a check that hangs names itself in `muster events NODE`; `nvidia-smi` on the node, "
             "and its temperature"},
    FacetRow{"certificate", "validate", Stage::Certificate, seconds(1), seconds(30)},
    FacetRow{"pool", "pool", Stage::Pool, seconds(30), seconds(600), kNotRecoverable,
             Revalidation::None,
             "what still runs there is in `muster events NODE`; the pool's drain policy says what "
             "happens at its deadline"},
    FacetRow{"pool.hold", "pool"},
    FacetRow{"pool.override", "pool"},
    FacetRow{"health.", "health", Stage::None, seconds(300), seconds(1800), kNotRecoverable,
             Revalidation::None,
             "watch the node's console: does it come up again? if not, power-cycle it"},
    FacetRow{"health.bmc", "bmc-health"},
    FacetRow{"bmc.", "bmc-health"},
    FacetRow{"agent-silent", "health"},
    FacetRow{"quarantine", "health"},
    FacetRow{"recovery.", "recovery", Stage::None, seconds(180), seconds(1800), kNotRecoverable,
             Revalidation::None, "the BMC does not answer again: inspect it in the rack"},
    FacetRow{"erased", "erase", Stage::None, seconds(1800), seconds(0), kNotRecoverable,
             Revalidation::None, "watch the node's console; `muster events NODE` names the disk"},
    FacetRow{"disk.system", "provision"},
    FacetRow{"left.", "lifecycle"},
    FacetRow{"unread.", "lifecycle"},
    FacetRow{"monitor.breaker.", "monitor"},
    FacetRow{"discovery", "discovery"},
    FacetRow{"hw.", "provision", Stage::None, seconds(0), seconds(0), kNotRecoverable,
             Revalidation::Gates},
    FacetRow{"hw.part.", "provision", Stage::None, seconds(0), seconds(0), kNotRecoverable,
             Revalidation::Policy},
    FacetRow{"gate-parts.", "validate"},
};

constexpr std::array kStages = {
    StageRow{Stage::Enrollment, "enrol", "enrolling", "enrolled"},
    StageRow{Stage::Firmware, "firmware", "updating firmware", "firmware as declared"},
    StageRow{Stage::Bios, "bios", "configuring BIOS", "BIOS as declared"},
    StageRow{Stage::Raid, "raid", "configuring RAID", "RAID as declared"},
    StageRow{Stage::Inspection, "inspect", "inspecting", "inspected"},
    StageRow{Stage::Image, "image", "imaging", "imaged"},
    StageRow{Stage::Boot, "boot", "first boot", "booted"},
    StageRow{Stage::Drivers, "drivers", "configuring", "configured"},
    StageRow{Stage::InBandFirmware, "in-band", "updating firmware", "in-band firmware as declared"},
    StageRow{Stage::Storage, "storage", "mounting storage", "storage mounted"},
    StageRow{Stage::Fabric, "fabric", "checking fabric", "on fabric"},
    StageRow{Stage::Gates, "gates", "validating", "validated"},
    StageRow{Stage::Certificate, "certify", "certifying", "certified"},
    StageRow{Stage::Pool, "pool", "joining", "in pool"},
};

bool fits(std::string_view name, std::string_view facet) {
  return name.ends_with('.') ? facet.starts_with(name) : facet == name;
}

}  // namespace

std::span<const FacetRow> facetTable() { return kFacets; }
std::span<const StageRow> stageTable() { return kStages; }

const FacetRow* findFacetRow(std::string_view facet) {
  const FacetRow* found = nullptr;
  for (const auto& row : kFacets)
    if (!facet.empty() && row.facet.front() == facet.front() && fits(row.facet, facet) &&
        (!found || found->facet.size() < row.facet.size()))
      found = &row;
  return found;
}

Stage stageOf(const FacetName& facet) {
  const auto* row = findFacetRow(facet);
  return row ? row->stage : Stage::None;
}

Stage stageOf(const Goal& goal) { return goal.stage ? *goal.stage : stageOf(goal.facet.facet); }

const StageRow* findStageRow(Stage stage) {
  const auto found = std::find_if(kStages.begin(), kStages.end(),
                                  [stage](const StageRow& row) { return row.stage == stage; });
  return found == kStages.end() ? nullptr : &*found;
}

std::vector<Goal> inStageOrder(std::vector<Goal> goals) {
  std::sort(goals.begin(), goals.end(), [](const Goal& a, const Goal& b) {
    const auto x = stageOf(a), y = stageOf(b);
    return x != y ? x < y : a.facet.facet < b.facet.facet;
  });
  return goals;
}

void resolveStages(std::span<Goal*> goals) {
  if (std::all_of(goals.begin(), goals.end(), [](const Goal* goal) { return goal->after.empty(); }))
    return;
  std::vector<Stage> stages;
  stages.reserve(goals.size());
  for (const auto* goal : goals) stages.push_back(stageOf(*goal));
  for (auto* goal : goals)
    for (const auto stage : goal->after)
      for (std::size_t i = 0; i < goals.size(); ++i)
        if (stages[i] == stage && goals[i] != goal &&
            std::find(goal->needs.begin(), goal->needs.end(), goals[i]->facet) == goal->needs.end())
          goal->needs.push_back(goals[i]->facet);
}

}  // namespace muster::lifecycle
