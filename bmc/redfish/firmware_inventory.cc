// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/firmware_inventory.h"

#include "base/utf8.h"
#include "inventory/model/firmware.h"
#include "lifecycle/model/facet.h"

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxInventory = 1024;
constexpr std::size_t kMaxVersionBytes =
    1024;  ///< kept, shown and matched; declared ones are shorter
static_assert(kMaxVersionBytes > muster::inventory::kMaxComparedBytes);  // a cut one is none
constexpr std::chrono::milliseconds kInventoryHolds{
    250};  ///< after its answer; whoever waits for a version looks at longer intervals
constexpr std::string_view kInstalled = "Installed-", kPrevious = "Previous-";

/// What an iDRAC's id names: "Installed-0-1.4.0__BIOS.Setup.1-1".
std::string fqddOf(const std::string& id, std::string_view kind) {
  const auto mark = id.find("__");
  return id.starts_with(kind) && mark != std::string::npos ? id.substr(mark + 2) : std::string();
}

/// The name of a member under this rule; "" when the member is not installed firmware.
std::string memberName(const std::string& uri, const Json& json, InventoryKey key) {
  std::string id = textAt(json, "Id");
  if (id.empty()) id = lastSegment(uri);
  if (key == InventoryKey::Name && !textAt(json, "Name").empty()) return textAt(json, "Name");
  return key == InventoryKey::InstalledFqdd ? fqddOf(id, kInstalled) : id;
}

/// HPE says where a part is plugged in; drives say it with their name.
std::string nameInPlace(const std::string& name, const Json& json) {
  const auto place = textAt(json, "Oem/Hpe/DeviceContext");
  if (place.empty() || place.starts_with(name)) return place.empty() ? name : place;
  return fmt::format("{} ({})", name, place);
}

/// The names of all members: one that is not unique is told by where the part is, else by its Id.
std::vector<std::string> namesOf(const std::vector<Member>& members, InventoryKey key) {
  std::vector<std::string> names;
  const auto usesOf = [&names] {
    std::map<std::string, int> uses;
    for (const auto& name : names) ++uses[name];
    return uses;
  };
  for (const Member& m : members) names.push_back(memberName(m.uri, m.json, key));
  const auto uses = usesOf();
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!names[i].empty() && uses.at(names[i]) > 1)
      names[i] = nameInPlace(names[i], members[i].json);
  const auto uses_in_place = usesOf();
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!names[i].empty() && uses_in_place.at(names[i]) > 1) names[i] = lastSegment(members[i].uri);
  return names;
}

}  // namespace

std::string versionAt(const Json& json) {
  const auto text = textAt(json, "Version");
  return std::string(cutToBytes(muster::inventory::trimmedVersion(text), kMaxVersionBytes));
}

Async<FirmwareInventory::Contents> FirmwareInventory::read() {
  read_.reset();
  const auto mine = ++reads_sent_;
  CO_TRY_OK(co_await resources_.uris());
  const auto writes = resources_.session().writes();
  const auto generation = resources_.generation();
  CO_TRY(seen, co_await contents());
  const bool all_read = std::ranges::all_of(
      seen.items, [](const FirmwareItem& item) { return item.unreadable.empty(); });
  if (!all_read || mine != reads_sent_ || writes != resources_.session().writes() ||
      generation != resources_.generation())
    co_return seen;
  const auto kept = std::make_shared<const Contents>(std::move(seen));
  resources_.session().recent().keep(kept);
  read_ = Read{kept, resources_.clock().steady(), writes, generation};
  co_return *kept;
}

Async<FirmwareInventory::Contents> FirmwareInventory::cached() {
  if (read_ && read_->writes == resources_.session().writes() &&
      read_->generation == resources_.generation() &&
      resources_.clock().steady() - read_->at <= kInventoryHolds)
    if (const auto kept = read_->contents.lock()) co_return *kept;
  co_return co_await read();
}

Async<FirmwareInventory::Contents> FirmwareInventory::contents() {
  CO_TRY(at, co_await resources_.uris());
  const auto* known = collection_.get(resources_);
  std::string collection = known ? *known : std::string();
  if (collection.empty()) {
    CO_TRY(service, co_await resources_.session().get(at.update_service));
    collection = linkAt(service.body, "FirmwareInventory");
    if (collection.empty()) collection = at.update_service + "/FirmwareInventory";
    collection_.set(resources_, collection);
  }
  CO_TRY(listed, co_await resources_.members(collection, kMaxInventory, at.quirks.inventory_read,
                                             RedfishResources::Want::Expanded));
  const auto& found = listed.found;

  const auto names = namesOf(found, at.quirks.inventory_key);
  Contents inventory;
  inventory.collection = collection;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Member& m = found[i];
    const auto& name = names[i];
    if (name.empty() && at.quirks.rollback == RollbackMethod::UpdateFromPrevious)
      inventory.previous[fqddOf(lastSegment(m.uri), kPrevious)] = m;
    if (name.empty()) continue;
    // The package of a tray goes to the tray: what a GB200 says of each GPU does not count.
    auto updateable = boolAt(m.json, "Updateable");
    const auto& tray = at.quirks.tray.members;
    if (!tray.empty() && lifecycle::matches(tray, name) && updateable == false) updateable.reset();
    inventory.items.push_back(
        {name, versionAt(m.json), updateable, {}, textAt(m.json, "Status/State") == kUpdating});
    inventory.uri_by_name[name] = m.uri;
    if (auto related = linksAt(m.json, "RelatedItem"); !related.empty())
      inventory.related_by_name[name] = std::move(related.front());
  }
  for (const Members::Unread& m : listed.unread) {
    const std::string name = memberName(m.uri, Json::object(), at.quirks.inventory_key);
    if (!name.empty()) inventory.items.push_back({name, {}, std::nullopt, m.why.str()});
  }
  co_return inventory;
}

}  // namespace muster::bmc
