// SPDX-License-Identifier: Apache-2.0
// The tables of firmware baselines.
#include "base/io/crypto.h"
#include "base/io/regular_file.h"
#include "inventory/model/firmware.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::inventory {

namespace {

constexpr int kMaxMinutes = 24 * 60;
constexpr std::size_t kMaxSignatureBytes = 16u << 10;
constexpr TextFormat kConstraint{"a constraint", R"(^.{3,300}$)",
                                 "HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14"};
constexpr TextFormat kComponent{"a component's name in the BMC's inventory",
                                R"(^[A-Za-z0-9][A-Za-z0-9 ._()/#+-]{0,95}$)", "HGX_FW_FPGA_0"};
constexpr TextFormat kPattern{"a regular expression with at most one group", R"(^.{1,128}$)",
                              "GB200Nvl-([0-9.-]+)"};
constexpr TextFormat kDevice{
    "a device",
    R"(^(iana:[0-9]{1,10}|pci:[0-9a-fA-F]{4}|uuid:[0-9a-fA-F-]{36}|nic:[A-Za-z0-9_-]{1,32}|nvme:[ -~]{1,40}|fwupd:[0-9a-fA-F-]{36})$)",
    "iana:5703, nic:MT_0000000838, nvme:SAMSUNG MZQL2* or fwupd:GUID"};

void readVersion(std::string& out, const Value& value, const Shape& shape, Reader& reader) {
  if (const auto read = readText(value, shape, reader)) out = trimmedVersion(*read);
}

/// The comparable part, or a message at `where`.
std::optional<std::string> partOf(const FirmwareComponent& component, const std::string& version,
                                  const Value& where, Reader& reader) {
  auto part = comparablePart(component.pattern, version);
  if (part) return std::move(*part);
  reader.error(where, part.error().text(),
               "the pattern must find the comparable part in every version of the component");
  return std::nullopt;
}

void checkFile(const std::filesystem::path& file, const std::string& sha256, const Value& map,
               Reader& reader) {
  if (file.empty()) return;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    reader.warning(place(map, "file"), fmt::format("{} does not exist yet", file.string()),
                   "it must be there, with the declared digest, before an update");
  if (sha256.find_first_not_of('0') == std::string::npos)
    reader.warning(place(map, "sha256"),
                   "a digest of zeros is a placeholder: every file will be refused",
                   fmt::format("sha256sum {}", file.string()));
}

ObjectSpec make_intermediateSpec() {
  return Table<FirmwareImageFile>(
             "firmware-intermediate", "intermediate version",
             "A version that a component below it must run before it may go further.")
      .custom("version", true, text(kVersion), "The version that the BMC reports, as it prints it.",
              [](FirmwareImageFile& image, const Value& value, const Shape& shape, Reader& reader) {
                readVersion(image.version, value, shape, reader);
              })
      .prints(&FirmwareImageFile::version)
      .required("file", &FirmwareImageFile::file, text(kPath), "The vendor's update file.")
      .required("sha256", &FirmwareImageFile::sha256, text(kSha256), "Digest of the file.")
      .check([](FirmwareImageFile& image, const Value& map, Reader& reader) {
        checkFile(image.file, image.sha256, map, reader);
      })
      .spec();
}
MUSTER_SPEC(intermediateSpec)

void checkComponent(FirmwareComponent& component, const Value& map, Reader& reader) {
  checkFile(component.file, component.sha256, map, reader);
  const Value& where = place(map, component.pattern.empty() ? "intermediate" : "pattern");
  const auto target = partOf(component, component.version, where, reader);
  std::optional<std::string> before;
  for (const auto& image : component.intermediate) {
    const auto part = partOf(component, image.version, where, reader);
    if (!part || !target) return;
    const auto ahead = comparedVersions(*part, *target);
    const auto behind = before ? comparedVersions(*before, *part) : std::weak_ordering::less;
    if (!ahead || !behind)
      reader.error(place(map, "intermediate"),
                   fmt::format("{} cannot be compared with the other versions of this component",
                               image.version),
                   "declare the pattern that finds the comparable part in all of them");
    else if (*behind >= 0)
      reader.error(place(map, "intermediate"),
                   fmt::format("{} does not come after {}", image.version, *before),
                   "name the oldest first");
    else if (*ahead >= 0)
      reader.error(place(map, "intermediate"),
                   fmt::format("{} is not below {}, which it should lead to", image.version,
                               component.version));
    before = part;
  }
}

ObjectSpec make_componentSpec() {
  return Table<FirmwareComponent>(
             "firmware-component", "firmware component",
             "One component, under the name that the BMC's inventory gives it.")
      .custom("version", true, text(kVersion),
              "The version that the BMC must report, as it prints it; blanks at its ends do not "
              "count.",
              [](FirmwareComponent& component, const Value& value, const Shape& shape,
                 Reader& reader) { readVersion(component.version, value, shape, reader); })
      .prints(&FirmwareComponent::version)
      .optional("file", &FirmwareComponent::file, text(kPath),
                "The vendor's update file. Absent: the version is only compared.")
      .optional("sha256", &FirmwareComponent::sha256, text(kSha256),
                "Digest of the file; another file is never sent to a BMC.")
      .optional("activation", &FirmwareComponent::activation,
                choice({"auto", "none", "bmc-reset", "power-cycle", "ac-cycle"}),
                "What makes the uploaded version run; auto: known by the component's name.")
      .optional("intermediate", &FirmwareComponent::intermediate, listOf(object(intermediateSpec)),
                "Versions that must be passed through, the oldest first.")
      .optional("device", &FirmwareComponent::device, text(kDevice),
                "Who a PLDM package must be for: iana:NUMBER, pci:VENDOR or uuid:UUID. Or what the "
                "node's agent installs, not the BMC: nic:PSID (mstflint), nvme:MODEL (nvme-cli), "
                "fwupd:GUID.")
      .optional("pattern", &FirmwareComponent::pattern, text(kPattern),
                "Which part of its versions is compared in constraints and with intermediate "
                "versions: the first group of this regular expression, else what it matches. "
                "Absent: the whole version.")
      .optional("minutes", &FirmwareComponent::minutes, integer(0, kMaxMinutes),
                "How long its flash usually takes; 0: what was learned.")
      .printsAlways({"file", "sha256"})
      .needs("file", "sha256")
      .needs("sha256", "file")
      .needs("intermediate", "file")
      .check(checkComponent)
      .spec();
}
MUSTER_SPEC(componentSpec)

/// Makes `order` complete: the declared ones, then the rest by name.
void completeOrder(FirmwareBaseline& baseline, const Value& map, Reader& reader) {
  std::set<std::string> seen;
  const Value& order = place(map, "order");
  for (std::size_t i = 0; i < baseline.order.size(); ++i) {
    const std::string& name = baseline.order[i];
    if (!baseline.find(name))
      reader.error(order.items[i],
                   fmt::format("\"{}\" is no component of this baseline", shorten(name)),
                   "name a key of components");
    if (!seen.insert(name).second)
      reader.error(order.items[i], fmt::format("\"{}\" is in the order twice", shorten(name)),
                   "remove one");
  }
  baseline.declared_order = baseline.order.size();
  for (const FirmwareComponent& component : baseline.components)
    if (seen.insert(component.name).second) baseline.order.push_back(component.name);
}

void readConstraints(FirmwareBaseline& baseline, const Value& value, const Shape& shape,
                     Reader& reader) {
  if (!expectList(value, shape, reader)) return;
  for (const Value& item : value.items) {
    const auto words = readText(item, *shape.item, reader);
    if (!words) continue;
    if (auto constraint = FirmwareConstraint::parse(*words))
      baseline.constraints.push_back(std::move(*constraint));
  }
}

/// Said together with what is wrong with the order: a key that is bad would keep the rules between
/// keys from being looked at.
void checkConstraints(const FirmwareBaseline& baseline, const Value& map, Reader& reader) {
  if (!map.find("constraints")) return;
  for (const Value& item : place(map, "constraints").items) {
    const auto read = FirmwareConstraint::parse(item.text);
    const auto wrong = read ? brokenByTargets(*read, baseline) : read.error().text();
    if (!wrong.empty()) reader.error(item, wrong);
  }
}

/// A key or signature by its file.
void readSmallFile(std::string& out, const Value& value, const Shape& shape, Reader& reader) {
  std::filesystem::path path;
  readInto(path, value, shape, reader);
  if (path.empty()) return;
  auto content = io::readRegularFile(path, kMaxSignatureBytes);
  if (!content) return reader.error(value, content.error().text());
  out = std::move(*content);
}

void checkBaseline(FirmwareBaseline& baseline, const Value& map, Reader& reader) {
  completeOrder(baseline, map, reader);
  checkConstraints(baseline, map, reader);
  while (!baseline.signature.empty() &&
         std::isspace(static_cast<unsigned char>(baseline.signature.back())))
    baseline.signature.pop_back();
  if (baseline.signer_pem.empty()) return;
  const auto ours = io::verify(baseline.signer_pem, baseline.canonical(), baseline.signature);
  if (!ours)
    reader.error(place(map, "signature"),
                 fmt::format("the signature does not fit this baseline and this key: {}",
                             ours.error().text()),
                 "whoever holds the key signs it anew: muster firmware sign BASELINE");
}

ObjectSpec make_baselineSpec() {
  return Table<FirmwareBaseline>("firmware-baseline", "firmware baseline",
                                 "Versions that belong together.")
      .required("components", &FirmwareBaseline::components,
                mapOf(object(componentSpec), kComponent), "The components.")
      .optional(
          "order", &FirmwareBaseline::order, listOf(text(kComponent)),
          "Which comes first; those not listed follow as their activation allows, then by name.")
      .custom("constraints", false, listOf(text(kConstraint)),
              "Combinations that must never run together, on the way neither: A >= 1 needs B >= 2, "
              "or excludes.",
              readConstraints)
      .prints([](const FirmwareBaseline& baseline, const Printer&) {
        auto out = nlohmann::json::array();
        for (const auto& constraint : baseline.constraints) out.push_back(constraint.str());
        return out;
      })
      .custom("signature", false, text(kPath), "File with the Ed25519 signature of this baseline.",
              [](FirmwareBaseline& b, const Value& value, const Shape& shape, Reader& reader) {
                readSmallFile(b.signature, value, shape, reader);
              })
      .prints([](const FirmwareBaseline& baseline, const Printer&) -> nlohmann::json {
        return baseline.signature;
      })
      .custom("signer", false, text(kPath),
              "File with the public key (PEM) that must have signed it.",
              [](FirmwareBaseline& b, const Value& value, const Shape& shape, Reader& reader) {
                readSmallFile(b.signer_pem, value, shape, reader);
              })
      .printsAlways({"order"})
      .needs("signature", "signer")
      .needs("signer", "signature")
      .check(checkBaseline)
      .spec();
}

}  // namespace

MUSTER_SPEC(baselineSpec)

}  // namespace muster::inventory
