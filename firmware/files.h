// SPDX-License-Identifier: Apache-2.0
// Is the update file of a component there, and the one that was declared? Asked before a node is
// drained, not only before the upload: the answer is a fact, so that goals() stays pure.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "bmc/arbiter.h"
#include "inventory/model/firmware.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace muster::firmware {

struct PendingImages;

inline constexpr std::string_view kFileOk = "ok";

/// What is wrong with an image besides its digest, before anything of it is sent: a PLDM package
/// must be whole, bear the version, and be for the component's device. `begin`: the file's first
/// bytes; `file_bytes`: its size. Errors: Corrupt
Result<void> inspectImage(const inventory::FirmwareComponent& component,
                          const inventory::FirmwareImageFile& image, std::string_view begin,
                          std::uintmax_t file_bytes);
/// The same for whoever has all bytes at hand, with the checksum over them where the format has
/// one.
std::function<Result<void>(std::string_view)> inspectionOf(
    const inventory::FirmwareComponent& component, const inventory::FirmwareImageFile& image);

/// "firmware-file.BIOS": "ok", or what is wrong with its file.
inline FacetName fileFacet(const std::string& component) {
  return FacetName("firmware-file." + component);
}

/// "firmware-failed.BIOS": "1.4.2 REASON" after an installation of that version that failed for
/// good; it is not tried again by itself.
inline FacetName failedFacet(const std::string& component) {
  return FacetName("firmware-failed." + component);
}
/// What there is to forget before it is tried again.
std::vector<FacetName> failedFacets(const lifecycle::FactSet& facts,
                                    const lifecycle::Subject& subject);
/// Why this version is not flashed again; empty: nothing has failed.
std::string whyNotAgain(const inventory::FirmwareComponent& component,
                        const lifecycle::Subject& subject, const lifecycle::FactSet& facts);
/// The same for whoever asks of many components and knows what was left.
std::string whyNotAgain(const inventory::FirmwareComponent& component,
                        const lifecycle::Subject& subject, const lifecycle::FactSet& facts,
                        const PendingImages& pending);

/// Why this component cannot be flashed, and what would help: it declares no file, or (by the
/// facts) its file is not good. Empty: nothing is known against it.
std::string whyNotFlashable(const inventory::FirmwareBaseline& baseline,
                            const inventory::FirmwareComponent& component,
                            const lifecycle::Subject& subject, const lifecycle::FactSet& facts);
/// The same for a state of the file that was just read.
std::string whyNotFlashable(const inventory::FirmwareComponent& component,
                            const std::string& file_state);

/// Why nothing is sent for a component of which the BMC says Updateable: false.
std::string whyFixed(const inventory::FirmwareComponent& component);

/// "/firmware/SHA256/NAME", where imageRoutes serve it.
std::string imagePath(const inventory::FirmwareImageFile& image);

class FirmwareFiles {
 public:
  explicit FirmwareFiles(Workers& workers) : workers_(workers) {}
  /// kFileOk, or what is wrong with its file or with that of an intermediate version. A file is
  /// read once, until its size or time changes.
  Async<std::string> state(inventory::FirmwareComponent component);
  /// Why this image cannot be flashed now; empty: it can.
  Async<std::string> whyNot(inventory::FirmwareComponent component,
                            inventory::FirmwareImageFile image);
  /// The same, by the bytes as they are: size and time may be as they were.
  Async<std::string> whyNotNow(inventory::FirmwareComponent component,
                               inventory::FirmwareImageFile image);

 private:
  struct Hashed {
    std::uintmax_t size_bytes = 0;
    std::filesystem::file_time_type changed;
    std::string sha256;
    std::string trouble;  ///< of the package in it; empty: none
  };
  Async<std::string> stateOf(inventory::FirmwareComponent component,
                             inventory::FirmwareImageFile image);
  static std::string keyOf(const inventory::FirmwareComponent& component,
                           const inventory::FirmwareImageFile& image);
  static Result<Hashed> look(const inventory::FirmwareComponent& component,
                             const inventory::FirmwareImageFile& image, Hashed known);
  Workers& workers_;
  bmc::AsyncSemaphore one_{1};            ///< a thousand nodes ask for the same file
  std::map<std::string, Hashed> hashed_;  ///< by file, and what it is to be
};

}  // namespace muster::firmware
