// SPDX-License-Identifier: Apache-2.0
#include "provision/virtual_cds.h"

#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {

namespace {

std::string fileOf(const std::string& url) { return url.substr(url.rfind('/') + 1); }

}  // namespace

Result<std::optional<InsertedMedium>> VirtualCds::left(const NodeName& node) const {
  if (!log_) return std::optional<InsertedMedium>();
  return log_->medium(node);
}

/// By its URL. A BMC that shows less than that must show it in the drive that it named.
bool VirtualCds::isOurs(const bmc::VirtualMedium& drive,
                        const std::optional<InsertedMedium>& record) const {
  if (netboot_.isOwnMedium(drive.image)) return true;
  if (!record) return false;
  const bool same_drive = !record->drive.empty() && drive.id == record->drive;
  return std::ranges::any_of(record->urls,
                             [&](const std::string& url) {
                               return drive.image == url ||
                                      (same_drive && drive.image == fileOf(url));
                             }) ||
         (same_drive && drive.image.empty());
}

Async<bmc::BootTarget> VirtualCds::insert(NodeName node) {
  if (!log_) co_return fail(ErrorCode::Internal, "boot media are not written down here");
  auto& bmc = bmcs_.at(node);
  auto drives = co_await bmc.virtualMedia();
  if (!drives && drives.error().code() == ErrorCode::NotFound)
    co_return fail(
        Error(ErrorCode::NotFound,
              fmt::format("{} is to boot by virtual media, but {}; write boot_source: pxe "
                          "in its profile, or let its BMC have virtual media (a licence, "
                          "a setting, newer firmware)",
                          node.str(), drives.error().text()))
            .retryable(false));
  if (!drives) co_return fail(std::move(drives.error()));
  CO_TRY(record, log_->medium(node));
  for (const auto& drive : *drives) {
    if (!drive.inserted || isOurs(drive, record)) continue;
    co_return fail(Error(ErrorCode::Conflict,
                         fmt::format("the virtual drive {} of {} holds {}, which muster has not "
                                     "inserted; it is left alone. When nobody needs it any more: "
                                     "muster bmc media {} --eject",
                                     drive.id, bmc.address(),
                                     drive.image.empty() ? "an image" : drive.image, node.str()))
                       .retryable(false));
  }
  for (const auto& drive : *drives)
    if (drive.inserted) CO_TRY_OK(co_await bmc.ejectMedia(drive.id));
  CO_TRY(urls, co_await netboot_.armMedium(node));
  InsertedMedium medium{urls, ""};
  CO_TRY_OK(log_->mediumGoesIn(node, medium));
  auto inserted = co_await bmc.insertMedia(urls);
  if (!inserted) {
    const auto out = co_await eject(node);  // some have it in spite of what they say
    if (!out) logWarning("provision", "{}: {}", node.str(), out.error().str());
    co_return fail(std::move(inserted.error()).within("inserting the boot medium"));
  }
  medium.drive = inserted->id;
  CO_TRY_OK(log_->mediumGoesIn(node, medium));
  logInfo("provision", "{}: the boot medium is in the virtual drive {}", node.str(), inserted->id);
  co_return inserted->boots_by;
}

Async<void> VirtualCds::eject(NodeName node) {
  CO_TRY(record, left(node));
  if (!record) co_return Result<void>();
  auto& bmc = bmcs_.at(node);
  auto drives = co_await bmc.virtualMedia();
  if (!drives && drives.error().code() != ErrorCode::NotFound)
    co_return fail(std::move(drives.error()).within("ejecting the boot medium"));
  for (const auto& drive : drives.value_or(std::vector<bmc::VirtualMedium>())) {
    if (!drive.inserted || !isOurs(drive, record)) continue;
    auto out = co_await bmc.ejectMedia(drive.id);
    if (!out) co_return fail(std::move(out.error()).within("ejecting the boot medium"));
    logInfo("provision", "{}: the boot medium is out of the virtual drive {}", node.str(),
            drive.id);
  }
  co_return log_->mediumIsOut(node);
}

}  // namespace muster::provision
