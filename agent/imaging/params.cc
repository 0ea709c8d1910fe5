// SPDX-License-Identifier: Apache-2.0
// The WriteImage task's parameters, taken strictly: what is unknown or does not look right is
// refused before a disk is touched.
#include "agent/imaging/writer.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::agent {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxTextBytes = 64u << 10;
constexpr std::size_t kMaxListItems = 256;

std::unexpected<Error> wrong(std::string text) {
  return fail(ErrorCode::InvalidInput, "write-image task: " + std::move(text));
}

/// No line breaks or other control characters: these texts end up in configuration files, one a
/// line.
bool oneLine(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < ' ' || c == 127; });
}

class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  void text(const char* key, std::string& out, bool required = false, bool many_lines = false) {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) {
      if (required) refuse(fmt::format("\"{}\" is missing", key));
      return;
    }
    if (!found->is_string()) return refuse(fmt::format("\"{}\" is not text", key));
    out = found->get<std::string>();
    if (required && out.empty()) refuse(fmt::format("\"{}\" is empty", key));
    if (out.size() > kMaxTextBytes || (!many_lines && !oneLine(out)))
      refuse(fmt::format("\"{}\" is too long or has line breaks in it", key));
  }

  /// A list of texts, or one text with spaces between.
  void list(const char* key, std::vector<std::string>& out) {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return;
    if (found->is_string()) {
      if (!found->get<std::string>().empty()) out = {found->get<std::string>()};
    } else if (found->is_array() && found->size() <= kMaxListItems) {
      for (const json& item : *found) {
        if (!item.is_string())
          return refuse(fmt::format("\"{}\" has an entry that is not text", key));
        out.push_back(item.get<std::string>());
      }
    } else {
      return refuse(fmt::format("\"{}\" is not a list", key));
    }
    for (const auto& item : out)
      if (item.size() > kMaxTextBytes || !oneLine(item))
        refuse(fmt::format("\"{}\" has an entry that is too long or has line breaks in it", key));
  }

  void flag(const char* key, bool& out) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!found->is_boolean()) return refuse(fmt::format("\"{}\" is not true or false", key));
    out = found->get<bool>();
  }

  void refuse(std::string text) {
    if (fault_.empty()) fault_ = std::move(text);
  }
  const std::string& fault() const { return fault_; }

 private:
  const json& object_;
  std::string fault_;
};

template <class T>
bool numberInto(const json& object, const char* key, T& out) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return true;
  if (!found->is_number_integer() || found->get<std::int64_t>() < 0 ||
      found->get<std::int64_t>() > 1'000'000)
    return false;
  out = found->get<T>();
  return true;
}

bool isPlainName(const std::string& text) {
  return !text.empty() && text.size() <= 32 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos &&
         text[0] != '-';
}

Result<DiskSetSpec> parseSet(const json& object) {
  if (!object.is_object()) return wrong("\"storage\" has an entry that is no object");
  DiskSetSpec set;
  Reader reader(object);
  reader.text("name", set.name, true);
  reader.text("disks", set.disks, true);
  reader.flag("encrypt", set.encrypt);
  const bool numbers = numberInto(object, "count", set.count) &&
                       numberInto(object, "raid", set.raid) &&
                       numberInto(object, "sector_bytes", set.sector_bytes);
  if (!reader.fault().empty() || !numbers || !isPlainName(set.name))
    return wrong("storage: " +
                 (reader.fault().empty() ? "a name or a number is none" : reader.fault()));
  const json volumes = object.value("volumes", json::array());
  if (!volumes.is_array() || volumes.size() > kMaxListItems)
    return wrong("storage: \"volumes\" is not a list");
  for (const json& entry : volumes) {
    if (!entry.is_object()) return wrong("storage: a volume is no object");
    VolumeSpec volume;
    Reader of_volume(entry);
    of_volume.text("name", volume.name, true);
    of_volume.text("filesystem", volume.filesystem);
    of_volume.text("mount", volume.mount, true);
    if (!of_volume.fault().empty() || !numberInto(entry, "size_gib", volume.size_gib) ||
        !isPlainName(volume.name))
      return wrong("storage: volume: " +
                   (of_volume.fault().empty() ? "a name or a number is none" : of_volume.fault()));
    set.volumes.push_back(std::move(volume));
  }
  return set;
}

Result<RootSpec> parseRoot(const json& object) {
  if (!object.is_object()) return wrong("\"root\" is no object");
  RootSpec root;
  std::string key = "none";
  Reader reader(object);
  reader.text("encrypt", key);
  const bool numbers = numberInto(object, "count", root.count) &&
                       numberInto(object, "raid", root.raid) &&
                       numberInto(object, "lvm_gib", root.lvm_gib);
  if (!reader.fault().empty() || !numbers)
    return wrong("root: " + (reader.fault().empty() ? "a number is none" : reader.fault()));
  if (key != "none" && key != "tpm" && key != "keyfile")
    return wrong("root: \"encrypt\" is neither none, tpm nor keyfile");
  root.encrypt = key == "tpm"       ? RootSpec::Key::Tpm
                 : key == "keyfile" ? RootSpec::Key::File
                                    : RootSpec::Key::None;
  return root;
}

/// A name that DNS and /etc/hosts take; labels of letters, digits and dashes.
bool isHostname(const std::string& name) {
  return !name.empty() && name.size() <= 253 && name.front() != '-' && name.front() != '.' &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
             std::string::npos;
}

/// Goes into grub.cfg unquoted, so only what GRUB's shell leaves alone.
bool isKernelArgument(const std::string& text) {
  return text.find_first_of("\"'\\$;{}|&<>#`") == std::string::npos;
}

bool isAddress(const std::string& text) {
  return text.find_first_not_of("0123456789./abcdefABCDEF:") == std::string::npos;
}

}  // namespace

Result<WriteImageParams> parseWriteImageParams(std::string_view text) {
  const json object = jsonOrNone(text, kOrderJson);
  if (!object.is_object()) return wrong("not a JSON object");
  WriteImageParams params;
  Reader reader(object);
  reader.text("index_url", params.index_url, true);
  reader.text("pack_url", params.pack_url, true);
  reader.list("mirror_urls", params.mirror_urls);
  reader.text("digest", params.digest, true);
  reader.text("signing_public_pem", params.signing_public_pem, true, true);
  reader.text("disk", params.disk);
  reader.flag("wipe_allowed", params.wipe_allowed);
  reader.flag("data_wipe_allowed", params.data_wipe_allowed);
  reader.flag("secure_boot", params.secure_boot);
  reader.text("hostname", params.hostname, true);
  reader.text("address_cidr", params.address_cidr);
  reader.text("gateway", params.gateway);
  reader.list("dns", params.dns);
  reader.list("kernel_args", params.kernel_args);
  reader.list("authorized_keys", params.authorized_keys);
  reader.text("boot", params.boot);
  reader.text("user_data", params.user_data, false, true);
  if (object.contains("root")) {
    TRY(root, parseRoot(object["root"]));
    params.root = root;
  }
  const json storage = object.value("storage", json::array());
  if (!storage.is_array() || storage.size() > kMaxListItems)
    return wrong("\"storage\" is not a list");
  for (const json& entry : storage) {
    TRY(set, parseSet(entry));
    params.storage.push_back(std::move(set));
  }
  const json agent = object.value("agent", json::object());
  if (!agent.is_object()) return wrong("\"agent\" is not an object");
  Reader of_agent(agent);
  of_agent.text("url", params.agent_url, true);
  of_agent.text("ca_pem", params.agent_ca_pem, true, true);
  if (!reader.fault().empty()) return wrong(reader.fault());
  if (!of_agent.fault().empty()) return wrong("agent: " + of_agent.fault());

  if (params.address_cidr == "dhcp" || object.value("dhcp", json(false)) == json(true))
    params.address_cidr.clear();
  if (!isHostname(params.hostname))
    return wrong(fmt::format("\"{}\" is not a host name", params.hostname));
  if (params.boot != "bios" && params.boot != "uefi")
    return wrong("\"boot\" is neither bios nor uefi");
  if (!isAddress(params.address_cidr) || !isAddress(params.gateway))
    return wrong("the address is not an address");
  for (const auto& server : params.dns)
    if (!isAddress(server))
      return wrong(fmt::format("\"{}\" is not the address of a name server", server));
  for (const auto& argument : params.kernel_args)
    if (!isKernelArgument(argument))
      return wrong(fmt::format(
          "the kernel argument {} has characters that a boot loader would take for its own",
          argument));
  return params;
}

std::string WriteImageReport::json() const {
  return jsonText(nlohmann::json{{"digest", digest},
                                 {"disk", disk},
                                 {"seconds", seconds},
                                 {"bytes_written", bytes_written},
                                 {"bytes_skipped", bytes_skipped},
                                 {"bytes_fetched", bytes_fetched},
                                 {"peak_buffer_bytes", peak_buffer_bytes},
                                 {"retries", retries},
                                 {"dropped_mirrors", dropped_mirrors},
                                 {"kept_storage", kept_storage}});
}

}  // namespace muster::agent
