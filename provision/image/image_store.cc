#include "provision/image/image_store.h"

#include "agent/protocol/pack_index.h"
#include "base/io/files.h"
#include "provision/image/agent_initrd.h"
#include "provision/image/image_cache.h"
#include "provision/image/image_store_parts.h"
#include "provision/image/pack_writer.h"
#include "provision/image/recipes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

namespace muster::provision {

namespace fs = std::filesystem;
using agent::PackIndex;
using nlohmann::json;

namespace {

/// Counts up when the code, not a recipe, changes what comes out.
constexpr int kBuildVersion = 1;
constexpr const char* kContentFile = "content.json";

bool isDigest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

class CachedImageStore final : public ImageStore {
 public:
  CachedImageStore(ImageStoreOptions options, std::unique_ptr<SystemBuilder> builder)
      : options_(std::move(options)), builder_(std::move(builder)) {}

  Result<std::optional<PackedImage>> find(const inventory::Image& image) const override {
    const fs::path entry = entryOf(image);
    std::error_code ignored;
    if (!fs::exists(entry / kContentFile, ignored)) return std::nullopt;
    auto opened = openEntry(entry);
    if (!opened) return fail(std::move(opened).error().within(fmt::format("image {} in {}", image.name, entry.string())));
    return std::optional(std::move(*opened));
  }

  Result<PackedImage> build(const inventory::Image& image, std::function<void(std::string_view)> say) override {
    const fs::path entry = entryOf(image);
    auto lock = takeLock(entry, say, "image " + image.name);
    if (!lock) return fail(std::move(lock).error());
    std::error_code ignored;
    if (fs::exists(entry / kContentFile, ignored)) {
      auto kept = openOrHeal(entry, image.name, say);
      if (kept) return kept;
      say(fmt::format("{}: the kept image is not usable ({}); building it again", image.name, kept.error().text()));
    }
    auto built = publish(entry, [this, &image, &say](const fs::path& folder) { return fill(image, folder, say); });
    if (!built) return fail(std::move(built).error().within("building image " + image.name));
    return openEntry(entry);
  }

  Result<std::optional<RamOs>> findRamOs() const override {
    TRY(files, agentFiles(options_.agent_binary));
    TRY(agent_digest, agentFilesDigest(files));
    RamOs found = ramOsAt(agent_digest);
    std::error_code ignored;
    for (const fs::path& file : {found.kernel, found.initrd, found.agent_initrd})
      if (!fs::exists(file, ignored)) return std::nullopt;
    return std::optional(std::move(found));
  }

  Result<RamOs> buildRamOs(std::function<void(std::string_view)> say) override {
    TRY(files, agentFiles(options_.agent_binary));
    TRY(agent_digest, agentFilesDigest(files));
    const RamOs target = ramOsAt(agent_digest);
    const fs::path system = target.kernel.parent_path(), agent = target.agent_initrd.parent_path();
    std::error_code ignored;
    auto system_lock = takeLock(system, say, "the RAM OS");
    if (!system_lock) return fail(std::move(system_lock).error());
    if (!fs::exists(target.initrd, ignored)) {
      auto built = publish(system, [this, &say](const fs::path& folder) -> Result<void> {
        TRY_OK(builder_->buildRamOs(folder / "work", folder, say));
        return removeTree(folder / "work");
      });
      if (!built) return fail(std::move(built).error().within("building the RAM OS"));
    }
    auto agent_lock = takeLock(agent, say, "the agent's initrd");
    if (!agent_lock) return fail(std::move(agent_lock).error());
    if (!fs::exists(target.agent_initrd, ignored))
      TRY_OK(publish(agent, [&files](const fs::path& folder) { return writeAgentInitrd(files, folder / "agent.img"); }));
    return target;
  }

  std::vector<io::Route> routes() const override {
    return {{"GET", "/images/", [this](io::ServerRequest request) { return serveImage(std::move(request)); }},
            {"GET", "/ramos/", [this](io::ServerRequest request) { return serveRamOs(std::move(request)); }}};
  }

 private:
  static Result<BuildLock> takeLock(const fs::path& entry, const Say& say, const std::string& what) {
    fs::path file = entry;
    file += ".lock";
    return BuildLock::take(file, [&say, &what] { say("somebody else builds " + what + "; waiting for it"); });
  }

  fs::path entryOf(const inventory::Image& image) const { return options_.cache / "images" / imageKey(image); }

  RamOs ramOsAt(const std::string& agent_digest) const {
    const fs::path system = options_.cache / "ramos" / io::sha256Hex(fmt::format("{} {}", kBuildVersion, recipeDigest("ramos")));
    return {system / "vmlinuz", system / "initrd.img", options_.cache / "ramos" / ("agent-" + agent_digest) / "agent.img"};
  }

  Result<void> fill(const inventory::Image& image, const fs::path& folder, const Say& say) {
    const fs::path work = folder / "work", raw = folder / "root.ext4";
    TRY_OK(io::makeDirs(work));
    TRY_OK(builder_->buildRootFs(image, work, raw, say));
    TRY_OK(removeTree(work));
    const auto start = std::chrono::steady_clock::now();
    TRY(index, writePack(raw, folder / "pack", image.name, std::max(1u, std::thread::hardware_concurrency())));
    std::error_code ignored;
    fs::remove(raw, ignored);
    const auto zero = std::count_if(index.chunks.begin(), index.chunks.end(), [](const auto& chunk) { return chunk.zero; });
    say(fmt::format("{}: packed {} MiB ({} of {} chunks are empty) into {} MiB: {:.0f} s", image.name, index.size_bytes >> 20, zero,
                    index.chunks.size(), index.pack_bytes >> 20, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
    return io::writeFileAtomic(folder / kContentFile, canonicalJson(index));
  }

  /// The image of a cache folder, with an index signed by this store's key.
  /// Errors: Corrupt (content, size of the pack), Denied (an index that somebody else signed)
  Result<PackedImage> openEntry(const fs::path& entry) const {
    TRY(canonical, io::readFile(entry / kContentFile, agent::kMaxIndexBytes));
    const std::string digest = io::sha256Hex(canonical);
    const fs::path signed_index = signedIndexOf(entry);
    std::error_code error;
    if (!fs::exists(signed_index, error)) {
      TRY(signature, io::sign(options_.key, canonical));
      json object = json::parse(canonical, nullptr, false);
      if (!object.is_object()) return fail(ErrorCode::Corrupt, "content.json is damaged");
      object["signature"] = signature;
      TRY_OK(io::writeFileAtomic(signed_index, object.dump()));
    }
    TRY(text, io::readFile(signed_index, agent::kMaxIndexBytes));
    TRY(index, agent::openIndex(text, digest, options_.key.public_pem));
    const fs::path pack = entry / "pack";
    const auto bytes = fs::file_size(pack, error);
    if (error || bytes != index.pack_bytes)
      return fail(ErrorCode::Corrupt, fmt::format("the pack has {} bytes instead of {}", error ? 0 : bytes, index.pack_bytes));
    return PackedImage{index.name, digest, pack, signed_index, index.size_bytes};
  }

  fs::path signedIndexOf(const fs::path& entry) const { return entry / fmt::format("index-{}.json", options_.key.id()); }

  /// Against content.json, which every controller signs for itself.
  static Result<void> checkPack(const fs::path& entry) {
    TRY(text, io::readFile(entry / kContentFile, agent::kMaxIndexBytes));
    const json object = json::parse(text, nullptr, false);
    TRY(sha256, io::sha256File(entry / "pack"));
    if (!object.is_object() || object.value("pack_sha256", "") != sha256)
      return fail(ErrorCode::Corrupt, "the pack does not have the SHA-256 that its index says");
    return {};
  }

  /// A whole pack whose signed index is damaged, or signed by somebody else, is signed anew.
  Result<PackedImage> openOrHeal(const fs::path& entry, const std::string& name, const Say& say) const {
    TRY_OK(checkPack(entry));
    auto kept = openEntry(entry);
    if (kept) return kept;
    say(fmt::format("{}: its signed index is not usable ({}); the pack is whole and is signed again", name, kept.error().text()));
    std::error_code ignored;
    fs::remove(signedIndexOf(entry), ignored);
    return openEntry(entry);
  }

  /// Only what this cache holds has a digest: the target never becomes a path.
  Result<PackedImage> findDigest(const std::string& digest) const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(options_.cache / "images", error)) {
      if (!fs::exists(entry.path() / kContentFile, error) || !isDigest(entry.path().filename().string())) continue;
      const auto image = openEntry(entry.path());
      if (image && image->digest == digest) return *image;
    }
    return fail(ErrorCode::NotFound, "no such image");
  }

  Task<io::ServerResponse> serveImage(io::ServerRequest request) const {
    const std::string rest = request.path().substr(std::string_view("/images/").size());
    const auto slash = rest.find('/');
    const std::string digest = rest.substr(0, slash), file = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (!isDigest(digest) || (file != "index.json" && file != "pack")) co_return io::ServerResponse::text(404, "no such image\n");
    auto known = served_.find(digest);
    if (known == served_.end()) {
      auto image = findDigest(digest);
      if (!image) co_return io::ServerResponse::text(404, "no such image\n");
      known = served_.emplace(digest, std::move(*image)).first;
    }
    if (file == "pack") co_return io::ServerResponse::file({known->second.pack, "application/octet-stream"});
    co_return io::ServerResponse::file({known->second.index, "application/json"});
  }

  Task<io::ServerResponse> serveRamOs(io::ServerRequest request) const {
    const std::string path = request.path();
    const auto found = findRamOs();
    if (!found || !*found) co_return io::ServerResponse::text(404, "the RAM OS is not built\n");
    const RamOs& ramos = **found;
    if (path == "/ramos/vmlinuz") co_return io::ServerResponse::file({ramos.kernel});
    if (path == "/ramos/initrd.img") co_return io::ServerResponse::file({ramos.initrd});
    if (path == "/ramos/agent.img") co_return io::ServerResponse::file({ramos.agent_initrd});
    co_return io::ServerResponse::text(404, "no such file\n");
  }

  ImageStoreOptions options_;
  std::unique_ptr<SystemBuilder> builder_;
  mutable std::map<std::string, PackedImage> served_;  ///< by digest; only touched by handlers, on the control thread
};

}  // namespace

std::string imageKey(const inventory::Image& image) {
  json inputs = {{"version", kBuildVersion}, {"recipes", recipeDigest("node")}, {"name", image.name}, {"ssh", !image.authorized_keys.empty()},
                 {"chunk_bytes", agent::kPackChunkBytes}};
  if (const auto* build = std::get_if<inventory::ImageBuild>(&image.source)) {
    auto packages = build->packages;
    std::sort(packages.begin(), packages.end());
    packages.erase(std::unique(packages.begin(), packages.end()), packages.end());
    inputs["build"] = {{"suite", build->suite}, {"packages", packages}, {"mirror", build->mirror}};
  } else {
    inputs["import"] = std::get<inventory::ImageImport>(image.source).sha256;
  }
  return io::sha256Hex(inputs.dump());
}

std::unique_ptr<ImageStore> openImageStore(ImageStoreOptions options, std::unique_ptr<SystemBuilder> builder) {
  return std::make_unique<CachedImageStore>(std::move(options), std::move(builder));
}

std::unique_ptr<ImageStore> openImageStore(ImageStoreOptions options) { return openImageStore(std::move(options), makeDebianBuilder()); }

}  // namespace muster::provision
