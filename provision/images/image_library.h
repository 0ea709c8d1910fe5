// SPDX-License-Identifier: Apache-2.0
// What an operator does with the images that are kept: find one, list, compare, clear up. Building
// and serving is image_store.h.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"
#include "provision/images/image_entry.h"
#include "provision/images/ramos_sets.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::provision {

struct KeptImage {
  std::filesystem::path folder;
  std::string key, name, digest;
  std::uint64_t size_bytes = 0, pack_bytes = 0;
  std::string predecessor;            ///< digest of the image that it was laid out over, or empty
  std::vector<std::string> signers;   ///< ids of the keys
  std::vector<std::string> profiles;  ///< of this inventory that use it
  bool declared = false;              ///< this inventory declares exactly it
  std::string fault;  ///< why it cannot be read; the other fields are then partly empty
};

/// All that the cache holds, in the order of name and key.
std::vector<KeptImage> keptImages(const std::filesystem::path& cache,
                                  const inventory::Cluster& cluster);

/// The image that `words` mean: the name of a declared image, NAME@DIGEST, or the beginning of a
/// digest (four characters at least). Errors: NotFound, Conflict (several fit); each says which
/// there are
Result<KeptImage> findKept(const std::vector<KeptImage>& kept, std::string_view words);

/// Who still needs an image, by digest: "node gpu001 runs it". Made by who knows facts and journal.
using Needs = std::map<std::string, std::string>;
/// Every digest in a text of the store (a fact's value, an intent).
void addNeeds(std::string_view text, const std::string& why, Needs& needs);

struct Clearing {
  struct Kept {
    KeptImage image;
    std::string why;
  };
  std::vector<Kept> keep;
  std::vector<KeptImage> remove;
  std::vector<std::filesystem::path> leftovers;  ///< of builds that were killed
  std::vector<RamOsSet> ramos;  ///< all there are; those without a reason to stay go
  std::uint64_t bytes = 0;      ///< that removing gives back, of images
};
/// Pure: declared images and those that are needed stay.
Clearing planClearing(const std::vector<KeptImage>& kept, const Needs& needs);
/// Folders that killed builds left; those of a build that is going on are none.
std::vector<std::filesystem::path> leftovers(const std::filesystem::path& cache);
/// Removes what the plan says, each under its lock. Errors: Internal, Conflict (mounted)
Result<void> clear(const Clearing& plan);

}  // namespace muster::provision
