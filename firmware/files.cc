// SPDX-License-Identifier: Apache-2.0
#include "firmware/files.h"

#include "base/io/crypto.h"
#include "firmware/baselines.h"
#include "firmware/firmware.h"
#include "firmware/pending_images.h"
#include "firmware/pldm.h"
#include "inventory/model/firmware.h"
#include "inventory/model/in_band.h"
#include "lifecycle/model/orphaned_operation.h"

#include <algorithm>
#include <fstream>

namespace muster::firmware {
std::vector<FacetName> failedFacets(const lifecycle::FactSet& facts,
                                    const lifecycle::Subject& subject) {
  std::vector<FacetName> out;
  for (const auto& fact : facts.view(subject))
    if (fact.facet.str().starts_with(failedFacet("").str()) ||
        (isOrphanedUpdate(fact.facet) && fact.value != lifecycle::kNoOrphanedOperation))
      out.push_back(fact.facet);
  return out;
}

std::string whyNotAgain(const inventory::FirmwareComponent& component,
                        const lifecycle::Subject& subject, const lifecycle::FactSet& facts) {
  return whyNotAgain(component, subject, facts, pendingImagesOf(facts, subject));
}

std::string whyNotAgain(const inventory::FirmwareComponent& component,
                        const lifecycle::Subject& subject, const lifecycle::FactSet& facts,
                        const PendingImages& pending) {
  auto failed = facts.value(subject, failedFacet(component.name)).value_or("");
  for (const auto& failure : pending.failed)
    if (failure.target == Target{component.name, component.version})
      failed = component.version + " " + failure.why;
  if (!failed.starts_with(component.version + " ")) return {};
  return fmt::format(
      "installing {} {} has failed: {}. Once that is understood: muster firmware retry {}",
      component.name, component.version, failed.substr(component.version.size() + 1),
      subject.str());
}

std::string whyNotFlashable(const inventory::FirmwareComponent& component,
                            const std::string& file_state) {
  if (file_state == kFileOk) return {};
  return fmt::format(
      "{} {} cannot be installed: {}; fetch the file again, or correct file and sha256 in the "
      "baseline",
      component.name, component.version, file_state);
}

std::string whyFixed(const inventory::FirmwareComponent& component) {
  return fmt::format(
      "the BMC says of {} that it cannot be updated by itself (Updateable: false); declare the "
      "component whose package brings {} {}, or leave out its file, so that it is only compared",
      component.name, component.name, component.version);
}

std::string whyNotFlashable(const inventory::FirmwareBaseline& baseline,
                            const inventory::FirmwareComponent& component,
                            const lifecycle::Subject& subject, const lifecycle::FactSet& facts) {
  if (component.file.empty()) {
    return fmt::format(
        "baseline {} declares {} {} without a file, so it is only compared; install it by other "
        "means, or declare file and sha256",
        baseline.name, component.name, component.version);
  }
  if (!inventory::isInBand(component) && isFixed(facts, subject, component.name))
    return whyFixed(component);
  return whyNotFlashable(
      component, facts.value(subject, fileFacet(component.name)).value_or(std::string(kFileOk)));
}

Result<void> inspectImage(const inventory::FirmwareComponent& component,
                          const inventory::FirmwareImageFile& image, std::string_view begin,
                          std::uintmax_t file_bytes) {
  if (inventory::isInBand(component)) return {};  // its own tool reads the image, on the node
  if (!looksLikePldm(begin)) {
    if (component.device.empty()) return {};
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is no PLDM package, so nothing says that it is for {}",
                            image.file.string(), component.device));
  }
  TRY(package, parsePldm(begin.substr(0, kMaxPldmHeaderBytes), file_bytes));
  if (!component.device.empty() && !package.isFor(component.device))
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{} is for {}, not for {}", image.file.string(),
                    fmt::join(package.devices.front().descriptors, ", "), component.device));
  if (!package.bears(image.version))
    return fail(ErrorCode::Corrupt,
                fmt::format("{} brings {}, the baseline declares {}", image.file.string(),
                            package.versions(), image.version));
  return {};
}

std::function<Result<void>(std::string_view)> inspectionOf(
    const inventory::FirmwareComponent& component, const inventory::FirmwareImageFile& image) {
  return [component, image](std::string_view bytes) -> Result<void> {
    TRY_OK(inspectImage(component, image, bytes, bytes.size()));
    return looksLikePldm(bytes) && !inventory::isInBand(component) ? checkPldmPayload(bytes)
                                                                   : Result<void>();
  };
}

Async<std::string> FirmwareFiles::state(inventory::FirmwareComponent component) {
  auto images = component.intermediate;
  images.push_back({component.version, component.file, component.sha256});
  for (const auto& image : images) {
    CO_TRY(state, co_await stateOf(component, image));
    if (state != kFileOk) co_return std::move(state);
  }
  co_return std::string(kFileOk);
}

Async<std::string> FirmwareFiles::whyNot(inventory::FirmwareComponent component,
                                         inventory::FirmwareImageFile image) {
  CO_TRY(state, co_await stateOf(component, image));
  component.version = image.version;
  co_return whyNotFlashable(component, state);
}

Async<std::string> FirmwareFiles::whyNotNow(inventory::FirmwareComponent component,
                                            inventory::FirmwareImageFile image) {
  hashed_.erase(keyOf(component, image));
  co_return co_await whyNot(std::move(component), std::move(image));
}

std::string FirmwareFiles::keyOf(const inventory::FirmwareComponent& component,
                                 const inventory::FirmwareImageFile& image) {
  return fmt::format("{}\n{}\n{}", image.file.string(), image.version, component.device);
}

/// Blocking.
Result<FirmwareFiles::Hashed> FirmwareFiles::look(const inventory::FirmwareComponent& component,
                                                  const inventory::FirmwareImageFile& image,
                                                  Hashed known) {
  TRY(sha256, io::sha256File(image.file));
  known.sha256 = std::move(sha256);
  std::string begin(std::min<std::uintmax_t>(known.size_bytes, kMaxPldmHeaderBytes), '\0');
  std::ifstream in(image.file, std::ios::binary);
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  if (const auto fine = inspectImage(component, image, begin, known.size_bytes); !fine)
    known.trouble = fine.error().text();
  return known;
}

Async<std::string> FirmwareFiles::stateOf(inventory::FirmwareComponent component,
                                          inventory::FirmwareImageFile image) {
  const auto& file = image.file;
  auto permit = co_await one_.enter();
  std::error_code error;
  const auto size_bytes = std::filesystem::file_size(file, error);
  if (error) co_return fmt::format("{}: {}", file.string(), error.message());
  const auto changed = std::filesystem::last_write_time(file, error);
  const auto key = keyOf(component, image);
  auto known = hashed_.find(key);
  if (known == hashed_.end() || known->second.size_bytes != size_bytes ||
      known->second.changed != changed) {
    const Hashed fresh{size_bytes, changed, {}, {}};
    auto seen = co_await offload<Result<Hashed>>(
        workers_, [component, image, fresh] { return look(component, image, fresh); });
    if (!seen) co_return seen.error().str();
    known = hashed_.insert_or_assign(key, std::move(*seen)).first;
  }
  if (known->second.sha256 != image.sha256)
    co_return fmt::format("{} has the SHA-256 {}, the baseline declares {}", file.string(),
                          known->second.sha256, image.sha256);
  co_return known->second.trouble.empty() ? std::string(kFileOk) : known->second.trouble;
}

}  // namespace muster::firmware
