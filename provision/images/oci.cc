// SPDX-License-Identifier: Apache-2.0
// OCI image archives (image-spec: oci-layout, index.json, blobs/sha256): layers laid over each
// other into one tree.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/printable.h"
#include "provision/images/archive.h"
#include "provision/images/image_entry.h"
#include "provision/images/image_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace muster::provision {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMaxJsonBytes = 4u << 20;
constexpr std::size_t kMaxLayers = 512;
constexpr int kMaxNesting = 3;
constexpr std::size_t kMaxNamed = 8, kMaxNameBytes = 32;  ///< in a message
constexpr std::string_view kDigestPrefix = "sha256:";

std::string text(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

/// The file of a descriptor, which must have the SHA-256 that it is named by.
Result<fs::path> blobOf(const fs::path& layout, const json& descriptor) {
  const std::string digest = text(descriptor, "digest");
  if (!digest.starts_with(kDigestPrefix) || !isDigest(digest.substr(kDigestPrefix.size())))
    return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is no SHA-256 of a blob", digest));
  const fs::path blob = layout / "blobs/sha256" / digest.substr(kDigestPrefix.size());
  TRY(found, io::sha256File(blob));
  if (kDigestPrefix.size() + found.size() != digest.size() || !digest.ends_with(found))
    return fail(ErrorCode::Corrupt, fmt::format("blob {} is damaged", digest));
  return blob;
}

Result<json> readJson(const fs::path& file) {
  TRY(words, io::readFile(file, kMaxJsonBytes));
  auto parsed = parseJson(words, kArchiveJson);
  if (!parsed) return fail(std::move(parsed).error().within(file.filename().string()));
  json object = std::move(*parsed);
  if (!object.is_object())
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is not a JSON object", file.filename().string()));
  return object;
}

/// Empty: it names none, as archives of one image do.
std::string architectureOf(const json& descriptor) {
  return text(descriptor.value("platform", json::object()), "architecture");
}

/// For messages: what is there instead. The words are foreign.
std::string architecturesOf(const json& manifests) {
  std::set<std::string> names;
  for (const json& entry : manifests)
    if (entry.is_object() && names.size() < kMaxNamed)
      names.insert(printable(architectureOf(entry)).substr(0, kMaxNameBytes));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// From index.json, through an index of platforms when there is one, to the image's manifest.
Result<json> manifestOf(const fs::path& layout, const ArchitectureTraits& wanted) {
  TRY(object, readJson(layout / "index.json"));
  for (int depth = 0; depth < kMaxNesting; ++depth) {
    const json manifests = object.value("manifests", json());
    if (!manifests.is_array()) return object;
    const auto chosen = std::find_if(manifests.begin(), manifests.end(), [&](const json& entry) {
      if (!entry.is_object()) return false;
      const auto architecture = architectureOf(entry);
      return architecture.empty() || architecture == wanted.name;
    });
    if (chosen == manifests.end())
      return fail(ErrorCode::InvalidInput, fmt::format("it holds no image for {}, only for {}",
                                                       wanted.name, architecturesOf(manifests)));
    TRY(blob, blobOf(layout, *chosen));
    TRY(next, readJson(blob));
    object = std::move(next);
  }
  return fail(ErrorCode::InvalidInput, "its indexes are nested too deep");
}

}  // namespace

Result<void> extractOci(const fs::path& archive, const fs::path& work, const fs::path& root,
                        Architecture architecture) {
  const fs::path layout = work / "oci";
  TRY_OK(io::makeDirs(layout));
  TRY_OK(extractFiles(archive, layout));
  auto manifest = manifestOf(layout, traitsOf(architecture));
  if (!manifest) return fail(std::move(manifest).error().within(archive.string()));
  const json layers = manifest->value("layers", json());
  if (!layers.is_array() || layers.empty() || layers.size() > kMaxLayers)
    return fail(ErrorCode::InvalidInput, archive.string() + " has no layers");
  for (const json& layer : layers) {
    if (text(layer, "mediaType").find(".tar") == std::string::npos)
      return fail(ErrorCode::InvalidInput, fmt::format("{}: a layer of type \"{}\" is not known",
                                                       archive.string(), text(layer, "mediaType")));
    auto blob = blobOf(layout, layer);
    if (!blob) return fail(std::move(blob).error().within(archive.string()));
    TRY_OK(extractTree(*blob, root, true));
  }
  return {};
}

}  // namespace muster::provision
