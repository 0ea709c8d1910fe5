// SPDX-License-Identifier: Apache-2.0
// Which kept image a new one is laid out over, so that nodes that have it fetch what changed
// (ext4_succession.h). Its digest is in the new image's index: a build can be repeated.
#pragma once

#include "base/result.h"
#include "provision/images/system_builder.h"
#include "wire/pack_index.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace muster::provision {

inline constexpr std::string_view kNoPredecessor = "none";

struct Predecessor {
  std::filesystem::path entry;
  std::string digest;
  wire::PackIndex index;
};

/// The predecessor of an image that will be built as `entry`:
///   `wanted` is a digest or its beginning   that image, whatever its name
///   `wanted` is "none"                      none
///   `entry` is here (its pack is damaged)   the one that its index names, so that it comes out as
///   it
///                                           was; none if it was laid out without one
///   else                                    the newest root file system of that name
/// Errors: NotFound (`wanted`, which is named), Conflict (several begin so)
Result<std::optional<Predecessor>> choosePredecessor(const std::filesystem::path& cache,
                                                     const std::filesystem::path& entry,
                                                     const std::string& name,
                                                     std::string_view wanted);

/// Lays `raw` out over the predecessor, in place; `work` is a folder for the copy. Where that
/// cannot be, `raw` stays as it is, and `say` hears why. Returns whether it was done.
bool layOutOverPredecessor(const Predecessor& predecessor, const std::filesystem::path& raw,
                           const std::filesystem::path& work, const std::string& name,
                           const Say& say);

/// Names the predecessor in the index of an image that was laid out over it. An image with the same
/// chunks is the same image: its index stays what it was.
void recordPredecessor(const Predecessor& predecessor, wire::PackIndex& index);

}  // namespace muster::provision
