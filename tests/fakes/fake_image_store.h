// SPDX-License-Identifier: Apache-2.0
// FakeImageStore: images by name in memory; nothing is built.
#pragma once

#include "inventory/model/images.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"

#include <map>
#include <string>

namespace muster::test {

class FakeImageStore final : public provision::ImageStore {
 public:
  std::map<std::string, provision::PackedImage> images;  ///< by name
  std::optional<provision::RamOs> ram_os = provision::RamOs{"vmlinuz", "initrd.img", "agent.img"};
  std::optional<Architecture> no_ram_os_for;
  int builds = 0;
  std::optional<Error> refuse_find;  ///< what the store says instead

  void add(const std::string& name, const std::string& digest) {
    images[name] = {name, digest, "pack", "index.json", 1u << 30};
  }

  Result<std::optional<provision::PackedImage>> find(const inventory::Image& image) const override {
    if (refuse_find) return fail(*refuse_find);
    const auto it = images.find(image.name);
    if (it == images.end()) return std::nullopt;
    return it->second;
  }
  using ImageStore::build;
  Result<provision::PackedImage> build(const inventory::Image& image,
                                       std::function<void(std::string_view)>,
                                       const std::string&) override {
    ++builds;
    const auto it = images.find(image.name);
    if (it == images.end())
      return fail(ErrorCode::Internal, "the fake store cannot build " + image.name);
    return it->second;
  }
  Result<std::optional<provision::RamOs>> findRamOs(Architecture architecture) const override {
    if (no_ram_os_for == architecture) return std::optional<provision::RamOs>();
    return ram_os;
  }
  Result<provision::RamOs> buildRamOs(Architecture,
                                      std::function<void(std::string_view)>) override {
    ++builds;
    if (!ram_os) return fail(ErrorCode::Internal, "the fake store cannot build the RAM OS");
    return *ram_os;
  }
  std::vector<io::Route> routes() const override { return {}; }
};

}  // namespace muster::test
