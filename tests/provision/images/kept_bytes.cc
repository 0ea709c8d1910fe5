// SPDX-License-Identifier: Apache-2.0
#include "tests/provision/images/kept_bytes.h"

#include "inventory/model/images.h"
#include "tests/provision/images/kept_images.h"

namespace muster::test {

Result<std::string> keepImageOfBytes(const std::filesystem::path& cache,
                                     const std::filesystem::path& agent,
                                     const io::SigningKey& key) {
  const auto bytes = [](const std::filesystem::path& file) {
    return io::writeFileAtomic(file, std::string(provision::kMib, 'x'));
  };
  TRY(built,
      provision::openImageStore({cache, agent, key},
                                std::make_unique<provision::FileBuilder>(bytes))
          ->build({"bookworm", inventory::ImageBuild{"bookworm", {"linux-image-amd64"}, ""}, {}},
                  [](std::string_view) {}));
  return built.digest;
}

}  // namespace muster::test
