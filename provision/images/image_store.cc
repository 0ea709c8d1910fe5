// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_store.h"

#include "base/io/files.h"
#include "base/json_output.h"
#include "inventory/model/images.h"
#include "provision/images/agent_initrd.h"
#include "provision/images/build_unit.h"
#include "provision/images/image_bundle.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_entry.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/live_image.h"
#include "provision/images/pack_reader.h"
#include "provision/images/pack_writer.h"
#include "provision/images/packed_image.h"
#include "provision/images/predecessor.h"
#include "provision/images/ramos.h"
#include "provision/images/ramos_cache.h"
#include "provision/images/ramos_sets.h"
#include "provision/images/recipes.h"
#include "provision/images/served_images.h"
#include "wire/pack_index.h"

#include <boost/asio/post.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

namespace muster::provision {

namespace fs = std::filesystem;
using nlohmann::json;
using wire::PackIndex;

namespace {

/// Counts up when the code, not a recipe, changes what comes out.
constexpr int kBuildVersion = 1;

wire::PackKind packKind(inventory::ImageKind kind) {
  switch (kind) {
    case inventory::ImageKind::RootFs:
      return wire::PackKind::RootFs;
    case inventory::ImageKind::Disk:
      return wire::PackKind::Disk;
    case inventory::ImageKind::Live:
      return wire::PackKind::Live;
  }
  return wire::PackKind::RootFs;
}

/// Of the files below /images/DIGEST/; nullptr: there is no such file.
const char* contentType(std::string_view file) {
  if (file == "index.json") return "application/json";
  return file == "pack" || file == kLiveKernel || file == kLiveModules ? "application/octet-stream"
                                                                       : nullptr;
}

class CachedImageStore final : public ImageStore {
 public:
  CachedImageStore(ImageStoreOptions options, std::unique_ptr<SystemBuilder> builder)
      : options_(std::move(options)),
        builder_(std::move(builder)),
        served_([cache = options_.cache, key = options_.key] { return imagesOf(cache, key); },
                options_.workers) {
    for (const auto& traits : kArchitectures)
      ramos_[traits.architecture] = std::make_shared<RamOsCache>(options_, traits.architecture);
  }

  Result<std::optional<PackedImage>> find(const inventory::Image& image) const override {
    const fs::path entry = entryOf(image);
    std::error_code ignored;
    if (!fs::exists(entry / kContentFile, ignored)) return std::nullopt;
    auto opened = openEntry(entry, options_.key);
    if (!opened)
      return fail(std::move(opened).error().within(
          fmt::format("image {} in {}", image.name, entry.string())));
    return std::optional(std::move(*opened));
  }

  using ImageStore::build;
  Result<PackedImage> build(const inventory::Image& image,
                            std::function<void(std::string_view)> say,
                            const std::string& over) override {
    const fs::path entry = entryOf(image);
    auto lock = takeLock(entry, say, "image " + image.name);
    if (!lock) return fail(std::move(lock).error());
    std::error_code ignored;
    if (fs::exists(entry / kContentFile, ignored)) {
      auto kept = openOrHeal(entry, image.name, say);
      if (kept && !over.empty())
        say(fmt::format("{}: it is here already and stays as it is laid out", image.name));
      if (kept) return withLiveBoot(entry, std::move(*kept), say);
      say(fmt::format("{}: the kept image is not usable ({}); building it again", image.name,
                      kept.error().text()));
    }
    std::optional<Predecessor> predecessor;
    if (image.kind == inventory::ImageKind::RootFs) {
      TRY(chosen, choosePredecessor(options_.cache, entry, image.name, over));
      predecessor = std::move(chosen);
    }
    auto built = publish(entry, [this, &image, &predecessor, &say](const fs::path& folder) {
      return fill(image, predecessor, folder, say);
    });
    if (!built) return fail(std::move(built).error().within("building image " + image.name));
    TRY(opened, openEntry(entry, options_.key));
    return withLiveBoot(entry, std::move(opened), say);
  }

  Result<std::optional<RamOs>> findRamOs(Architecture architecture) const override {
    TRY(found, ramos_.at(architecture)->present());
    for (const fs::path& set : {found.kernel.parent_path(), found.agent_initrd.parent_path()})
      TRY_OK(hold(set));
    std::error_code ignored;
    for (const fs::path& file :
         {found.kernel, found.initrd, found.agent_initrd, found.shim, found.grub})
      if (!file.empty() && !fs::exists(file, ignored)) return std::nullopt;
    return std::optional(std::move(found));
  }

  Result<RamOs> buildRamOs(Architecture architecture,
                           std::function<void(std::string_view)> say) override {
    TRY(named, ramos_.at(architecture)->workOut());
    RamOs target = std::move(named.ram_os);
    const fs::path system = target.kernel.parent_path(), agent = target.agent_initrd.parent_path();
    std::error_code ignored;
    auto system_lock = takeLock(system, say, "the RAM OS");
    if (!system_lock) return fail(std::move(system_lock).error());
    if (!fs::exists(target.initrd, ignored)) {
      auto built = publish(system, [&](const fs::path& folder) -> Result<void> {
        TRY_OK(builder_->buildRamOs(options_.ram_os, architecture, folder / "work", folder, say));
        return removeTree(folder / "work");
      });
      if (!built) return fail(std::move(built).error().within("building the RAM OS"));
    }
    auto agent_lock = takeLock(agent, say, "the agent's initrd");
    if (!agent_lock) return fail(std::move(agent_lock).error());
    if (!fs::exists(target.agent_initrd, ignored))
      TRY_OK(publish(agent, [&named](const fs::path& folder) {
        return writeAgentInitrd(named.files, folder / "agent.img");
      }));
    return target;
  }

  std::vector<io::Route> routes() const override {
    // Soon the first machine asks for it; by then it is known, and the control thread has not
    // waited for it.
    if (options_.workers)
      asio::post(options_.workers->pool(),
                 [ramos = ramos_.at(kBuiltFor)] { (void)ramos->present(); });
    return {{"GET", "/images/",
             [this](io::ServerRequest request) { return serveImage(std::move(request)); }},
            {"GET", "/ramos/",
             [this](io::ServerRequest request) { return serveRamOs(std::move(request)); }}};
  }

 private:
  static Result<BuildLock> takeLock(const fs::path& entry, const Say& say,
                                    const std::string& what) {
    fs::path file = entry;
    file += ".lock";
    return BuildLock::take(
        file, [&say, &what] { say("somebody else builds " + what + "; waiting for it"); });
  }

  /// Asked for with every node of a plan: the key is made anew only when the declaration changes.
  fs::path entryOf(const inventory::Image& image) const {
    const std::lock_guard lock(keys_mutex_);
    auto& known = keys_[image.name];
    if (known.key.empty() || known.of != image) known = {image, imageKey(image)};
    return options_.cache / "images" / known.key;
  }

  /// While this process lives, its RAM OS is not cleared away under the machines that start from
  /// it.
  Result<void> hold(const fs::path& set) const {
    std::error_code ignored;
    if (used_.contains(set) || !fs::exists(set, ignored)) return {};
    TRY(use, RamOsUse::hold(set));
    used_.emplace(set, std::move(use));
    return {};
  }

  Result<void> fill(const inventory::Image& image, const std::optional<Predecessor>& predecessor,
                    const fs::path& folder, const Say& say) {
    if (const auto* import = std::get_if<inventory::ImageImport>(&image.source);
        import && isBundle(import->path)) {
      say(fmt::format("{}: importing {}", image.name, import->path.string()));
      return takeBundle(*import, folder);
    }
    const fs::path work = folder / "work", raw = folder / "root.ext4";
    TRY_OK(io::makeDirs(work));
    TRY_OK(builder_->buildRootFs(image, work, raw, say));
    TRY_OK(removeTree(work));
    const bool over =
        predecessor && layOutOverPredecessor(*predecessor, raw, folder, image.name, say);
    const auto start = std::chrono::steady_clock::now();
    TRY(index, writePack(raw, folder / kPackFile, image.name,
                         std::max(1u, std::thread::hardware_concurrency()), packKind(image.kind)));
    if (over) recordPredecessor(*predecessor, index);
    std::error_code ignored;
    fs::remove(raw, ignored);
    const auto zero = std::count_if(index.chunks.begin(), index.chunks.end(),
                                    [](const auto& chunk) { return chunk.zero; });
    say(fmt::format(
        "{}: packed {} MiB ({} of {} chunks are empty) into {} MiB: {:.0f} s", image.name,
        index.size_bytes >> 20, zero, index.chunks.size(), index.pack_bytes >> 20,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
    return io::writeFileAtomic(folder / kContentFile, canonicalJson(index));
  }

  /// What starts a live image, taken out of it if that was not done yet: another controller's image
  /// comes without.
  Result<PackedImage> withLiveBoot(const fs::path& entry, PackedImage image, const Say& say) const {
    if (!image.live || !image.kernel.empty()) return image;
    say(fmt::format("{}: extracting its kernel and modules", image.name));
    TRY(index, contentOf(entry));
    TRY_OK(publish(liveBootOf(entry), [&](const fs::path& folder) -> Result<void> {
      const fs::path work = folder / "work", squashfs = work / "squashfs";
      TRY_OK(io::makeDirs(work));
      TRY_OK(unpack(index, entry / kPackFile, squashfs));
      TRY_OK(makeLiveBoot(squashfs, work / "live", folder));
      return removeTree(work);
    }));
    return openEntry(entry, options_.key);
  }

  /// A whole pack whose signed index is damaged, or signed by somebody else, is signed anew.
  Result<PackedImage> openOrHeal(const fs::path& entry, const std::string& name,
                                 const Say& say) const {
    TRY_OK(checkPack(entry));
    auto kept = openEntry(entry, options_.key);
    if (kept) return kept;
    say(fmt::format(
        "{}: its signed index is not usable ({}); the pack is intact and is signed again", name,
        kept.error().text()));
    return signAgain(entry, options_.key);
  }

  /// Only what this cache holds has a digest: the target never becomes a path. Blocking.
  static ServedImages::Images imagesOf(const fs::path& cache, const io::SigningKey& key) {
    ServedImages::Images images;
    for (const auto& entry : listEntries(cache))
      if (auto image = openEntry(entry, key)) images.emplace(image->digest, std::move(*image));
    return images;
  }

  Task<io::ServerResponse> serveImage(io::ServerRequest request) const {
    const std::string rest = request.path().substr(std::string_view("/images/").size());
    const auto slash = rest.find('/');
    const std::string digest = rest.substr(0, slash),
                      file = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (!isDigest(digest) || !contentType(file))
      co_return io::ServerResponse::text(404, "no such image\n");
    const auto image = co_await served_.find(digest);
    if (!image) co_return io::ServerResponse::text(404, "no such image\n");
    const fs::path& path = file == "pack"         ? image->pack
                           : file == "index.json" ? image->index
                           : file == kLiveKernel  ? image->kernel
                                                  : image->modules;
    if (path.empty()) co_return io::ServerResponse::text(404, "no such file\n");
    co_return io::ServerResponse::file({path, contentType(file)});
  }

  /// The name first: anybody may ask, and only three names are worth a look at what lies here.
  Task<io::ServerResponse> serveRamOs(io::ServerRequest request) const {
    static const std::map<std::string, fs::path RamOs::*, std::less<>> kFiles = {
        {"vmlinuz", &RamOs::kernel},
        {"initrd.img", &RamOs::initrd},
        {"agent.img", &RamOs::agent_initrd}};
    const auto path = request.path();
    auto name = std::string_view(path).substr(std::string_view("/ramos/").size());
    auto architecture = Architecture::Amd64;
    for (const auto& traits : kArchitectures)
      if (const auto folder = std::string(traits.name) + "/";
          traits.architecture != Architecture::Amd64 && name.starts_with(folder)) {
        architecture = traits.architecture;
        name.remove_prefix(folder.size());
      }
    const auto file = kFiles.find(name);
    if (file == kFiles.end()) co_return io::ServerResponse::text(404, "no such file\n");
    if (options_.workers && !ramos_.at(architecture)->isKnown())
      (void)co_await offload<bool>(*options_.workers, [ramos = ramos_.at(architecture)] {
        return ramos->present().has_value();
      });
    const auto found = findRamOs(architecture);
    if (!found || !*found) co_return io::ServerResponse::text(404, "the RAM OS is not built\n");
    co_return io::ServerResponse::file({**found.*file->second});
  }

  ImageStoreOptions options_;
  std::unique_ptr<SystemBuilder> builder_;
  std::map<Architecture, std::shared_ptr<RamOsCache>> ramos_;  ///< shared with workers
  mutable ServedImages served_;                ///< only touched by handlers, on the control thread
  mutable std::map<fs::path, RamOsUse> used_;  ///< by folder; likewise
  struct KnownKey {
    inventory::Image of;
    std::string key;
  };
  mutable std::mutex keys_mutex_;
  mutable std::map<std::string, KnownKey> keys_;  ///< by the image's name
};

std::vector<std::string> sortedOnce(std::vector<std::string> words) {
  std::ranges::sort(words);
  const auto again = std::ranges::unique(words);
  words.erase(again.begin(), again.end());
  return words;
}

/// Their keys are files that may be renewed: the archive is the same.
json identityOf(const std::vector<inventory::PackageArchive>& archives) {
  auto out = json::array();
  for (const auto& archive : archives)
    out.push_back({archive.name, archive.url, archive.suite, archive.components});
  return out;
}

}  // namespace

std::string imageKey(const inventory::Image& image) {
  const auto* build = std::get_if<inventory::ImageBuild>(&image.source);
  const bool dnf = build != nullptr && !build->release.empty();
  json inputs = {{"version", kBuildVersion},
                 {"recipes", recipeDigest(dnf ? "node-dnf" : "node")},
                 {"name", image.name},
                 {"ssh", !image.authorized_keys.empty()},
                 {"chunk_bytes", wire::kPackChunkBytes}};
  if (image.kind != inventory::ImageKind::RootFs)
    inputs["kind"] = std::string(wire::toString(packKind(image.kind)));
  if (image.arch != Architecture::Amd64) inputs["arch"] = traitsOf(image.arch).name;
  if (build != nullptr) {
    inputs["build"] = {{"suite", build->suite},
                       {"packages", sortedOnce(build->packages)},
                       {"mirror", build->mirror}};
    if (dnf) inputs["build"]["release"] = build->release;
    if (!build->modules.empty()) inputs["build"]["modules"] = build->modules;
    if (build->selinux != inventory::SelinuxMode::Permissive)
      inputs["build"]["selinux"] = static_cast<int>(build->selinux);
    if (!build->archives.empty()) inputs["build"]["archives"] = identityOf(build->archives);
  } else {
    inputs["import"] = std::get<inventory::ImageImport>(image.source).sha256;
  }
  return io::sha256Hex(jsonText(inputs));
}

std::string ramOsKey(const inventory::RamOsSpec& spec, Architecture architecture) {
  auto inputs = fmt::format("{} {}", kBuildVersion, recipeDigest("ramos"));
  if (architecture != Architecture::Amd64)
    inputs += fmt::format(" {}", traitsOf(architecture).name);
  if (spec != inventory::RamOsSpec{}) {
    const json declared = {{"kernel", spec.kernel},
                           {"packages", sortedOnce(spec.packages)},
                           {"modules", sortedOnce(spec.modules)},
                           {"archives", identityOf(spec.archives)}};
    inputs += " " + jsonText(declared);
  }
  return io::sha256Hex(inputs);
}

std::unique_ptr<ImageStore> openImageStore(ImageStoreOptions options,
                                           std::unique_ptr<SystemBuilder> builder) {
  return std::make_unique<CachedImageStore>(std::move(options), std::move(builder));
}

std::unique_ptr<ImageStore> openImageStore(ImageStoreOptions options) {
  return openImageStore(std::move(options), makeSystemBuilder());
}

Result<PackedImage> ImageStore::build(const inventory::Image& image,
                                      std::function<void(std::string_view)> say) {
  return build(image, std::move(say), "");
}

}  // namespace muster::provision
