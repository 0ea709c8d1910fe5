// SPDX-License-Identifier: Apache-2.0
// OCI image archives (image-spec: oci-layout, index.json, blobs/sha256): layers laid over each
// other into one tree.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
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
constexpr std::size_t kMaxNamed = 8, kMaxNameBytes = 32,
                      kMaxShownWordBytes = 128;  ///< in a message
constexpr std::string_view kDigestPrefix = "sha256:";

/// Foreign words for a message.
std::string shownWord(const std::string& word) {
  return printable(word.substr(0, kMaxShownWordBytes)) +
         (word.size() > kMaxShownWordBytes ? "…" : "");
}

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
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is no SHA-256 of a blob", shownWord(digest)));
  fs::path blob = layout / "blobs/sha256" / digest.substr(kDigestPrefix.size());
  std::error_code missing;
  const auto bytes = fs::file_size(blob, missing);
  if (missing)
    return fail(
        ErrorCode::Corrupt,
        fmt::format("it lacks the blob {}: copy the image anew (skopeo copy … oci-archive:FILE)",
                    digest));
  // image-spec, descriptors: content of another size is not to be trusted.
  if (const auto size = descriptor.find("size");
      size != descriptor.end() && (!size->is_number_integer() || *size != bytes))
    return fail(ErrorCode::Corrupt, fmt::format("blob {} has {} bytes, what names it says {}",
                                                digest, bytes, shownWord(jsonText(*size))));
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
std::string platformOf(const json& descriptor, const char* key) {
  return text(descriptor.value("platform", json::object()), key);
}

/// For messages: what is there instead. The words are foreign.
std::string platformsOf(const json& manifests) {
  std::set<std::string> names;
  for (const json& entry : manifests)
    if (entry.is_object() && names.size() < kMaxNamed) {
      const auto os = platformOf(entry, "os");
      names.insert(printable((os.empty() || os == "linux" ? "" : os + "/") +
                             platformOf(entry, "architecture"))
                       .substr(0, kMaxNameBytes));
    }
  return names.empty() ? "none at all" : fmt::format("only for {}", fmt::join(names, ", "));
}

/// Its tag, or its digest.
std::string nameOf(const json& descriptor) {
  const auto tag =
      text(descriptor.value("annotations", json::object()), "org.opencontainers.image.ref.name");
  return shownWord(tag.empty() ? text(descriptor, "digest") : tag);
}

/// The one for this processor. Two of them are two images, and nobody said which.
Result<json> chosenOf(const json& manifests, const ArchitectureTraits& wanted) {
  json chosen;
  for (const json& entry : manifests) {
    if (!entry.is_object() || entry.contains("artifactType")) continue;  // a signature is no image
    const auto architecture = platformOf(entry, "architecture"), os = platformOf(entry, "os");
    if ((!architecture.empty() && architecture != wanted.name) || (!os.empty() && os != "linux"))
      continue;
    if (chosen.is_null()) chosen = entry;
    if (text(entry, "digest") != text(chosen, "digest"))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("it holds several images for {} ({} and {}): copy the one that is "
                              "meant alone (skopeo copy oci-archive:FILE:TAG "
                              "oci-archive:ONE)",
                              wanted.name, nameOf(chosen), nameOf(entry)));
  }
  if (chosen.is_null())
    return fail(ErrorCode::InvalidInput,
                fmt::format("it holds no image for {}, {}", wanted.name, platformsOf(manifests)));
  return chosen;
}

/// From index.json, through an index of platforms when there is one, to the image's manifest.
Result<json> manifestOf(const fs::path& layout, const ArchitectureTraits& wanted) {
  TRY(object, readJson(layout / "index.json"));
  for (int depth = 0; depth < kMaxNesting; ++depth) {
    const json manifests = object.value("manifests", json());
    if (!manifests.is_array()) return object;
    TRY(chosen, chosenOf(manifests, wanted));
    TRY(blob, blobOf(layout, chosen));
    TRY(next, readJson(blob));
    object = std::move(next);
  }
  return fail(ErrorCode::InvalidInput, "its indexes are nested too deep");
}

Result<void> layOver(const fs::path& layout, const json& layer, const fs::path& root) {
  const auto type = text(layer, "mediaType");
  if (type.find("+encrypted") != std::string::npos)
    return fail(ErrorCode::InvalidInput,
                "a layer is encrypted: decrypt it first (skopeo copy --decryption-key)");
  if (type.find(".tar") == std::string::npos)
    return fail(ErrorCode::InvalidInput,
                fmt::format("a layer of type \"{}\" is not known", shownWord(type)));
  TRY(blob, blobOf(layout, layer));
  return extractTree(blob, root, true);
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
  if (!layers.is_array() || layers.empty())
    return fail(ErrorCode::InvalidInput, archive.string() + " has no layers");
  if (layers.size() > kMaxLayers)
    return fail(ErrorCode::InvalidInput, fmt::format("{} has {} layers, an image may have {}",
                                                     archive.string(), layers.size(), kMaxLayers));
  for (const json& layer : layers)
    if (auto laid = layOver(layout, layer, root); !laid)
      return fail(std::move(laid).error().within(archive.string()));
  return {};
}

}  // namespace muster::provision
