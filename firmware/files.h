// Is the update file of a component there, and the one that was declared? Asked before a node is drained, not only before the
// upload: the answer is a fact, so that goals() stays pure.
#pragma once

#include "base/ids.h"
#include "bmc/arbiter.h"
#include "inventory/cluster.h"
#include "lifecycle/facet.h"

#include <filesystem>
#include <map>
#include <string>

namespace muster::firmware {

inline constexpr std::string_view kFileOk = "ok";

/// "firmware-file.BIOS": "ok", or what is wrong with its file.
inline FacetName fileFacet(const std::string& component) { return FacetName("firmware-file." + component); }

/// Why this component cannot be flashed, and what would help: it declares no file, or (by the facts) its file is not good.
/// Empty: nothing is known against it.
std::string whyNotFlashable(const inventory::FirmwareBaseline& baseline, const inventory::FirmwareComponent& component,
                            const lifecycle::Subject& subject, const lifecycle::FactSet& facts);
/// The same for a state of the file that was just read.
std::string whyNotFlashable(const inventory::FirmwareComponent& component, const std::string& file_state);

class FirmwareFiles {
 public:
  explicit FirmwareFiles(Workers& workers) : workers_(workers) {}
  /// kFileOk, or what is wrong. A file is hashed once, until its size or time changes.
  Async<std::string> state(inventory::FirmwareComponent component);

 private:
  struct Hashed {
    std::uintmax_t size_bytes = 0;
    std::filesystem::file_time_type changed;
    std::string sha256;
  };
  Workers& workers_;
  bmc::Turnstile one_{1};  ///< a thousand nodes ask for the same file
  std::map<std::filesystem::path, Hashed> hashed_;
};

}  // namespace muster::firmware
