#include "cli/commands/commands.h"

#include "cli/controller.h"

#include <iostream>

namespace muster::cli {
namespace {

void say(std::string_view words) { std::cout << words << std::endl; }

struct Opened {
  inventory::Cluster cluster;
  std::unique_ptr<provision::ImageStore> images;
};

Result<Opened> open(const Options& options) {
  TRY(cluster, loadCluster(options));
  TRY(keys, Keys::loadOrCreate(options.state));
  auto images = openImages(options, keys);
  return Opened{std::move(cluster), std::move(images)};
}

Result<void> buildAll(Opened& opened, const std::string& only) {
  if (only.empty() || only == "ramos") {
    TRY(ramos, opened.images->buildRamOs(say));
    std::cout << fmt::format("RAM OS: {} and {}\n", ramos.kernel.string(), ramos.initrd.string());
  }
  bool found = only.empty() || only == "ramos";
  for (const auto& [name, image] : opened.cluster.images) {
    if (!only.empty() && only != name) continue;
    found = true;
    TRY(packed, opened.images->build(image, say));
    std::cout << fmt::format("image {}@{}: {}\n", name, packed.digest.substr(0, 12), packed.pack.string());
  }
  if (!found) return fail(ErrorCode::NotFound, fmt::format("the inventory declares no image {}", only));
  return {};
}

}  // namespace

int imageBuild(const Options& options, const std::string& name) {
  auto opened = open(options);
  if (!opened) return report(opened.error());
  const auto built = buildAll(*opened, name);
  return built ? int{kOk} : report(built.error());
}

int imageList(const Options& options) {
  const auto opened = open(options);
  if (!opened) return report(opened.error());
  for (const auto& [name, image] : opened->cluster.images) {
    const auto packed = opened->images->find(image);
    if (!packed) return report(packed.error());
    std::cout << (*packed ? fmt::format("{:<24}{}  {:.0f} MiB\n", name, (*packed)->digest.substr(0, 12), static_cast<double>((*packed)->size_bytes) / (1 << 20))
                          : fmt::format("{:<24}not built: muster image build {}\n", name, name));
  }
  return kOk;
}

}  // namespace muster::cli
