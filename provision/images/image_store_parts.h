// SPDX-License-Identifier: Apache-2.0
// What the image store is made of, for tests: the builder as a seam, and the key of a declaration.
#pragma once

#include "provision/images/image_store.h"
#include "provision/images/system_builder.h"

namespace muster::provision {

std::unique_ptr<ImageStore> openImageStore(ImageStoreOptions options,
                                           std::unique_ptr<SystemBuilder> builder);

/// SHA-256 over everything that decides what a build gives: the declaration and the recipes.
std::string imageKey(const inventory::Image& image);
/// Likewise of the RAM OS, without the agent that travels beside it.
std::string ramOsKey(const inventory::RamOsSpec& spec, Architecture architecture);

}  // namespace muster::provision
