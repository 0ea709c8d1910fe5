// SPDX-License-Identifier: Apache-2.0
// The tables of `approvals` and of a pool's `maintenance`.
#include "base/time_zone.h"
#include "inventory/model/approvals.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <string>

namespace muster::inventory {

namespace {

constexpr int kMostApprovals = 10, kMostNodes = 200'000;
constexpr int kMinutesOfHour = 60, kLongestWindow = 7 * 24 * 60;
constexpr TextFormat kTimeOfDay{"a time of day, HH:MM", "^([01][0-9]|2[0-3]):[0-5][0-9]$", "22:00"};
constexpr TextFormat kTimeZone{"a time zone of the IANA database",
                               "^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$", "Europe/Berlin"};

ObjectSpec make_approvalSpec() {
  return Table<ApprovalRule>("approval", "approval",
                             "How many others must agree to a run that disturbs so much. Of the "
                             "rules that hold the largest number counts; the author of a run "
                             "never does.")
      .required("disruption", &ApprovalRule::disruption, choice({"any", "drain", "reset", "wipe"}),
                "drain: nodes that leave work, are reset or are wiped. reset: that are reset or "
                "wiped. wipe: that lose what their disks hold. any: nodes on which anything is "
                "done.")
      .optional("min_nodes", &ApprovalRule::min_nodes, integer(1, kMostNodes),
                "It holds from so many such nodes on.")
      .optional("pools", &ApprovalRule::pools, listOf(reference("pools"), 1),
                "Nodes of these pools count; absent: all nodes.")
      .optional("approvals", &ApprovalRule::approvals, integer(1, kMostApprovals),
                "So many people or robots besides the author.")
      .printsAlways({"disruption", "min_nodes", "approvals"})
      .spec();
}

void readFrom(MaintenanceWindow& window, const Value& value, const Shape& shape, Reader& reader) {
  const auto text = readText(value, shape, reader);
  if (text)
    window.from_minute =
        std::stoi(text->substr(0, 2)) * kMinutesOfHour + std::stoi(text->substr(3));
}

void checkWindow(MaintenanceWindow& window, const Value& map, Reader& reader) {
  if (const auto zone = TimeZone::load(window.time_zone); !zone)
    reader.error(place(map, "time_zone"), zone.error().text(),
                 "`timedatectl list-timezones` shows them");
}

ObjectSpec make_maintenanceSpec() {
  return Table<MaintenanceWindow>("maintenance-window", "maintenance window",
                                  "When runs may begin to take nodes of the pool out of work.")
      .optional("days", &MaintenanceWindow::days,
                listOf(choice({"sun", "mon", "tue", "wed", "thu", "fri", "sat"}), 1),
                "On which it opens; absent: every day.")
      .custom("from", true, text(kTimeOfDay),
              "When it opens, by the clocks of its zone. A time that the clocks skip counts as if "
              "they had not been changed yet; one that occurs twice is the first.",
              readFrom)
      .prints([](const MaintenanceWindow& window, const Printer&) -> nlohmann::json {
        return fmt::format("{:02}:{:02}", window.from_minute / kMinutesOfHour,
                           window.from_minute % kMinutesOfHour);
      })
      .required("minutes", &MaintenanceWindow::minutes, integer(1, kLongestWindow),
                "How long it is open.")
      .optional("time_zone", &MaintenanceWindow::time_zone, text(kTimeZone),
                "Of the IANA database.")
      .printsAlways({"time_zone"})
      .check(checkWindow)
      .spec();
}

}  // namespace

MUSTER_SPEC(approvalSpec)
MUSTER_SPEC(maintenanceSpec)

}  // namespace muster::inventory
