// SPDX-License-Identifier: Apache-2.0
// One document out of several: the files that an inventory includes, and profiles that extend
// others. What comes out has no `include` and no `extends` to follow; every value knows its file.
#pragma once

#include "inventory/parse/document.h"
#include "inventory/schema/spec.h"

namespace muster::inventory {

inline constexpr std::size_t kMaxIncludedFiles = 256;
inline constexpr std::size_t kMaxIncludedBytes = 64u << 20;  ///< of all files together

/// Reads the files of `include` (relative to the folder of the inventory, itself or theirs), and
/// adds their entries: sections of names are joined, lists follow each other. A file that is named
/// on several ways is read once. What stands in two files, a circle, and files elsewhere are
/// errors.
void includeFiles(Value& root, Reader& reader);

/// Gives each profile with `extends` the keys of that other profile that it has not itself. A key
/// that it has replaces the other's whole. Errors: a circle, an unknown name
void extendProfiles(Value& root, Reader& reader);

}  // namespace muster::inventory
