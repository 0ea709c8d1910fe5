// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/fleet_images.h"

#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "tests/fakes/fake_system_builder.h"
#include "tests/paths.h"

namespace muster::test {

Result<void> makeFleetImages(const std::filesystem::path& inventory,
                             const std::filesystem::path& cache, const io::SigningKey& key) {
  const auto loaded = inventory::load(inventory);
  if (!loaded.cluster) return fail(ErrorCode::InvalidInput, inventory::checkText(loaded));
  auto images = provision::openImageStore({cache, binFolder() / "muster-agent", key},
                                          std::make_unique<FakeSystemBuilder>());
  TRY_OK(images->buildRamOs(Architecture::Amd64, [](std::string_view) {}));
  TRY_OK(images->build(loaded.cluster->images.at("bookworm"), [](std::string_view) {}));
  return {};
}

}  // namespace muster::test
