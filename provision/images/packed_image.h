// SPDX-License-Identifier: Apache-2.0
// What the image store has: packed images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::provision {

/// What the store knows of one packed image. `digest` is the SHA-256 of the index's signed content:
/// it names the image.
struct PackedImage {
  std::string name;
  std::string digest;
  std::filesystem::path pack;                       ///< chunks, one after the other
  std::filesystem::path index;                      ///< signed JSON
  std::uint64_t size_bytes = 0;                     ///< of the file system when written out
  bool live = false;                                ///< it runs in memory
  std::filesystem::path kernel = {}, modules = {};  ///< what starts a live image, taken out of it;
                                                    ///< empty: not made yet (`build` does)
};

}  // namespace muster::provision
