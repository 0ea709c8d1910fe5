// SPDX-License-Identifier: Apache-2.0
// The output of `gdscheck -p`, read strictly.
#pragma once

#include "base/result.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace muster::validate {

struct GdsPlatform {
  std::string release;
  /// Each storage driver with its ways: "Supported" and "Unsupported" until release 1.15, "nvfs",
  /// "p2pdma", "dmabuf", "c2c", "compat" since. Compat copies through the processor's memory.
  std::map<std::string, std::set<std::string>> drivers;
  std::map<std::string, std::string> settings;  ///< "properties.use_compat_mode" → "true"
  std::map<int, bool> gpus;                     ///< by index: supports GDS
  std::string iommu;                            ///< "disabled"; "": it does not say
  bool verified = false;                        ///< "Platform verification succeeded"
  std::string verification;                     ///< what it says instead

  /// A way that does not go through the processor's memory.
  static bool isDirect(const std::set<std::string>& ways);
  /// Words that no release is known to say: nothing follows from them. None: every word is known.
  static std::set<std::string> unknownWords(const std::set<std::string>& ways);
};

/// Errors: Corrupt when a section is missing or there twice, a GPU is there twice, or it ends
/// without a word on the platform
Result<GdsPlatform> parseGdsCheck(std::string_view output);

}  // namespace muster::validate
