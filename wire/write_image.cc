// SPDX-License-Identifier: Apache-2.0
#include "wire/write_image.h"

#include "base/json_input.h"
#include "wire/fields.h"
#include "wire/node_network_fields.h"
#include "wire/pack_index.h"

#include <algorithm>

namespace muster::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = 64u << 10;  ///< of a text
constexpr std::size_t kMaxItems = 256;
constexpr std::uint64_t kMaxNumber = 1'000'000;
constexpr std::size_t kMaxPlainNameBytes = 32;
constexpr std::size_t kMaxHostnameBytes = 253;
constexpr std::size_t kMaxUrlBytes = 1024;
constexpr std::size_t kDigestHexBytes = 64;

constexpr Words<FileSystem, 2> kFileSystems{
    {{FileSystem::Xfs, toString(FileSystem::Xfs)}, {FileSystem::Ext4, toString(FileSystem::Ext4)}}};
constexpr Words<RootKey, 3> kRootKeys{
    {{RootKey::None, "none"}, {RootKey::Tpm, "tpm"}, {RootKey::File, "keyfile"}}};

constexpr Text kText{kMaxBytes};

// ---- kinds

/// The number that md calls it; None is absent.
struct RaidNumber {
  json print(RaidLevel level) const { return raidNumber(level).value_or(-1); }
  void read(JsonReader& reader, const char* key, bool optional, RaidLevel& level) const {
    if (optional && !reader.field(key, true)) return;
    const auto number = static_cast<int>(reader.unsignedNumber(key, kMaxNumber));
    for (const auto each : {RaidLevel::Raid0, RaidLevel::Raid1, RaidLevel::Raid5, RaidLevel::Raid6,
                            RaidLevel::Raid10})
      if (raidNumber(each) == number) {
        level = each;
        return;
      }
    reader.wrong(key, "is none of the RAID levels 0, 1, 5, 6 and 10");
  }
};

/// A list, or one text alone.
struct Lines {
  json print(const std::vector<std::string>& lines) const { return lines; }
  void read(JsonReader& reader, const char* key, bool optional,
            std::vector<std::string>& lines) const {
    const auto* value = reader.field(key, optional);
    if (!value) return;
    if (!value->is_string()) {
      lines = readTexts(reader, key, kMaxItems, kMaxBytes, optional);
    } else if (auto line = reader.text(key, kMaxBytes); !line.empty()) {
      lines = {std::move(line)};
    }
  }
};

/// An address with its prefix; without one it is DHCP's.
struct AddressOrDhcp {
  static constexpr std::string_view kDhcp = "dhcp";

  json print(const std::string& cidr) const { return cidr.empty() ? std::string(kDhcp) : cidr; }
  void read(JsonReader& reader, const char* key, bool optional, std::string& cidr) const {
    kText.read(reader, key, optional, cidr);
    if (cidr == kDhcp) cidr.clear();
  }
};

// ---- checks: these texts end up in configuration files, one a line

bool hasControlCharacters(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
}

bool hasOthersThan(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) != std::string_view::npos;
}

constexpr auto kLine = [](std::string_view text) -> std::string_view {
  return hasControlCharacters(text) ? "has line breaks in it" : "";
};

constexpr auto kNonEmptyLine = [](std::string_view text) -> std::string_view {
  return text.empty() ? "is empty" : kLine(text);
};

constexpr auto kEachALine = [](const std::vector<std::string>& lines) -> std::string_view {
  return std::ranges::any_of(lines, hasControlCharacters) ? "has an entry with line breaks in it"
                                                          : "";
};

constexpr auto kPlainName = [](std::string_view name) -> std::string_view {
  const bool plain = !name.empty() && name.size() <= kMaxPlainNameBytes && name[0] != '-' &&
                     !hasOthersThan(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");
  return plain ? "" : "is no name of small letters, digits, '-' and '_'";
};

/// A name that DNS and /etc/hosts take; labels of letters, digits and dashes.
constexpr auto kHostname = [](std::string_view name) -> std::string_view {
  const bool good =
      !name.empty() && name.size() <= kMaxHostnameBytes && name[0] != '-' && name[0] != '.' &&
      !hasOthersThan(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
  return good ? "" : "is not a host name";
};

bool isAddress(std::string_view text) { return !hasOthersThan(text, "0123456789./abcdefABCDEF:"); }

constexpr auto kAddress = [](std::string_view text) -> std::string_view {
  return isAddress(text) ? "" : "is not an address";
};

constexpr auto kAddresses = [](const std::vector<std::string>& servers) -> std::string_view {
  return std::ranges::all_of(servers, isAddress) ? ""
                                                 : "has an entry that is no name server's address";
};

/// Goes into grub.cfg unquoted, so only what GRUB's shell leaves alone.
constexpr auto kKernelArguments = [](const std::vector<std::string>& lines) -> std::string_view {
  const auto harms = [](std::string_view text) {
    return text.find_first_of("\"'\\$;{}|&<>#`") != std::string_view::npos;
  };
  return std::ranges::any_of(lines, harms)
             ? "has characters that a boot loader would take for its own"
             : kEachALine(lines);
};

constexpr auto kBootMode = [](std::string_view boot) -> std::string_view {
  return boot == "bios" || boot == "uefi" ? "" : "is neither bios nor uefi";
};

constexpr auto kSha256 = [](std::string_view digest) -> std::string_view {
  return digest.size() == kDigestHexBytes ? "" : "is no SHA-256";
};

constexpr auto kNotZero = [](std::uint64_t number) -> std::string_view {
  return number == 0 ? "is 0" : "";
};

}  // namespace

// ---- the fields of each type

template <>
inline constexpr auto kFields<StorageVolume> = std::tuple(
    field("name", &StorageVolume::name, kText).checked(kPlainName),
    field("size_gib", &StorageVolume::size_gib, Whole{kMaxNumber}).optional(),
    field("filesystem", &StorageVolume::filesystem, Word{&kFileSystems, kMaxBytes}).optional(),
    field("mount", &StorageVolume::mount, kText).checked(kNonEmptyLine));

template <>
inline constexpr auto kFields<StorageSet> =
    std::tuple(field("name", &StorageSet::name, kText).checked(kPlainName),
               field("disks", &StorageSet::disks, kText).checked(kNonEmptyLine),
               field("count", &StorageSet::count, Whole{kMaxNumber}).optional(),
               field("raid", &StorageSet::raid, RaidNumber{}).omitted(),
               field("encrypt", &StorageSet::encrypt, Flag{}).optional(),
               field("sector_bytes", &StorageSet::sector_bytes, Whole{kMaxNumber}).omitted(),
               field("volumes", &StorageSet::volumes, Items{kMaxItems}).optional());

template <>
inline constexpr auto kFields<RootLayout> =
    std::tuple(field("count", &RootLayout::count, Whole{kMaxNumber}).optional(),
               field("raid", &RootLayout::raid, RaidNumber{}).omitted(),
               field("encrypt", &RootLayout::encrypt, Word{&kRootKeys, kMaxBytes}).optional(),
               field("lvm_gib", &RootLayout::lvm_gib, Whole{kMaxNumber}).optional());

template <>
inline constexpr auto kFields<PeerParams> = std::tuple(
    field("metainfo_url", &PeerParams::metainfo_url, Text{kMaxUrlBytes}),
    field("metainfo_sha256", &PeerParams::metainfo_sha256, Text{kDigestHexBytes}).checked(kSha256),
    field("announce_url", &PeerParams::announce_url, Text{kMaxUrlBytes}),
    field("share_url", &PeerParams::share_url, Text{kMaxUrlBytes}),
    field("pack_bytes", &PeerParams::pack_bytes, Whole{kMaxImageBytes}).checked(kNotZero));

template <>
inline constexpr auto kFields<WriteImageParams::Agent> =
    std::tuple(field("url", &WriteImageParams::Agent::url, kText).checked(kNonEmptyLine),
               field("ca_pem", &WriteImageParams::Agent::ca_pem, kText).checked(kNotEmpty));

template <>
inline constexpr auto kFields<WriteImageParams> = std::tuple(
    field("index_url", &WriteImageParams::index_url, kText).checked(kNonEmptyLine),
    field("pack_url", &WriteImageParams::pack_url, kText).checked(kNonEmptyLine),
    field("mirror_urls", &WriteImageParams::mirror_urls, Lines{}).omitted().checked(kEachALine),
    field("digest", &WriteImageParams::digest, kText).checked(kNonEmptyLine),
    field("signing_public_pem", &WriteImageParams::signing_public_pem, kText).checked(kNotEmpty),
    field("disk", &WriteImageParams::disk, kText).optional().checked(kLine),
    field("root", &WriteImageParams::root, Maybe{Object{}}).omitted(),
    field("storage", &WriteImageParams::storage, Items{kMaxItems}).omitted(),
    field("user_data", &WriteImageParams::user_data, kText).omitted(),
    field("wipe_allowed", &WriteImageParams::wipe_allowed, Flag{}).optional(),
    field("data_wipe_allowed", &WriteImageParams::data_wipe_allowed, Flag{}).optional(),
    field("hostname", &WriteImageParams::hostname, kText).checked(kHostname),
    field("address_cidr", &WriteImageParams::address_cidr, AddressOrDhcp{})
        .optional()
        .checked(kAddress),
    field("gateway", &WriteImageParams::gateway, kText).omitted().checked(kAddress),
    field("dns", &WriteImageParams::dns, Lines{})
        .omittedIf([](const WriteImageParams& params) { return params.address_cidr.empty(); })
        .checked(kAddresses),
    field("network", &WriteImageParams::network, Maybe{Object{}}).omitted(),
    field("kernel_args", &WriteImageParams::kernel_args, Lines{})
        .optional()
        .checked(kKernelArguments),
    field("authorized_keys", &WriteImageParams::authorized_keys, Lines{})
        .optional()
        .checked(kEachALine),
    field("boot", &WriteImageParams::boot, kText).optional().checked(kBootMode),
    field("secure_boot", &WriteImageParams::secure_boot, Flag{}).omitted(),
    field("agent", &WriteImageParams::agent, Object{}),
    field("peers", &WriteImageParams::peers, Maybe{Object{}}).omitted());

std::string toJson(const WriteImageParams& params) { return printMessage(params); }

Result<WriteImageParams> parseWriteImageParams(std::string_view text) {
  constexpr const char* kTask = "write-image task";
  const json object = jsonOrNone(text, kOrderJson);
  if (!object.is_object())
    return fail(ErrorCode::InvalidInput, std::string(kTask) + ": not a JSON object");
  JsonReader reader(object, kTask);
  WriteImageParams params;
  readFields(reader, params);
  TRY_OK(reader.finish());
  if (params.network) TRY_OK(checkNodeNetwork(*params.network));
  // Controllers of before said it so.
  if (object.value("dhcp", json(false)) == json(true)) params.address_cidr.clear();
  return params;
}

}  // namespace muster::wire
