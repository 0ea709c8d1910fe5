// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/user_data.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/node.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
#include <nlohmann/json.hpp>

#include <array>

namespace muster::inventory {

namespace {

constexpr std::string_view kOpen = "${muster.", kClose = "}";
constexpr std::size_t kMaxPlaceBytes = 32;

struct Place {
  std::string_view name;
  std::string (*value)(const Node&);
};
constexpr std::array kPlaces{Place{"hostname", [](const Node& node) { return node.name.str(); }},
                             Place{"address",
                                   [](const Node& node) {
                                     return node.address.value() == 0 ? std::string()
                                                                      : node.address.str();
                                   }},
                             Place{"mac", [](const Node& node) { return node.mac.str(); }},
                             Place{"rack", [](const Node& node) { return node.rack; }},
                             Place{"profile", [](const Node& node) { return node.profile; }}};

std::unexpected<Error> wrong(std::string text) {
  return fail(ErrorCode::InvalidInput, "user data: " + std::move(text));
}

const Place* placeNamed(std::string_view name) {
  for (const auto& place : kPlaces)
    if (place.name == name) return &place;
  return nullptr;
}

/// `node` null: only looks. Errors: InvalidInput naming the place
Result<std::string> fill(std::string_view content, const Node* node) {
  std::string out;
  for (;;) {
    const auto open = content.find(kOpen);
    out += content.substr(0, open);
    if (open == std::string_view::npos) return out;
    content.remove_prefix(open + kOpen.size());
    const auto close = content.find(kClose);
    const auto* place =
        close == std::string_view::npos ? nullptr : placeNamed(content.substr(0, close));
    if (!place)
      return wrong(
          fmt::format("{}{}… is none of ${{muster.hostname}}, .address, .mac, .rack, .profile",
                      kOpen, content.substr(0, std::min(close, kMaxPlaceBytes))));
    if (node) out += place->value(*node);
    content.remove_prefix(close + kClose.size());
  }
}

Result<UserDataKind> checkIgnition(std::string_view content) {
  const auto object = jsonOrNone(content, kFileJson);
  if (!object.is_object()) return wrong("it begins like JSON and is none");
  const auto ignition = object.find("ignition");
  const bool versioned = ignition != object.end() && ignition->is_object() &&
                         ignition->contains("version") && (*ignition)["version"].is_string();
  if (!versioned) return wrong("it is JSON without ignition.version, so it is not Ignition's");
  if (!(*ignition)["version"].get<std::string>().starts_with("3."))
    return wrong(std::string("this version of Ignition is not known; 3.x is"));
  return UserDataKind::Ignition;
}

Result<UserDataKind> checkCloudConfig(std::string_view content) {
  try {
    const YAML::Node root = YAML::Load(std::string(content));
    if (!root.IsMap() && !root.IsNull()) return wrong("a #cloud-config is a map of keys");
  } catch (const YAML::Exception& error) {
    return wrong(fmt::format("it is no YAML (line {})", error.mark.line + 1));
  }
  return UserDataKind::CloudInit;
}

}  // namespace

Result<UserDataKind> checkUserData(std::string_view content) {
  if (content.empty() || content.size() > kMaxUserDataBytes)
    return wrong(fmt::format("it is empty or has more than {} KiB", kMaxUserDataBytes >> 10));
  if (content.find('\0') != std::string_view::npos) return wrong("it is not text");
  TRY_OK(fill(content, nullptr));
  if (content[content.find_first_not_of(" \t\r\n") == std::string_view::npos
                  ? 0
                  : content.find_first_not_of(" \t\r\n")] == '{')
    return checkIgnition(content);
  if (content.starts_with("#cloud-config")) return checkCloudConfig(content);
  for (const std::string_view head : {"#!", "#include", "#cloud-boothook", "## template: jinja",
                                      "Content-Type: multipart", "MIME-Version:"})
    if (content.starts_with(head)) return UserDataKind::CloudInit;
  return wrong(
      "it begins neither like cloud-init's (#cloud-config, #!, MIME) nor is it Ignition's JSON");
}

std::string userDataFor(const Profile& profile, const Node& node) {
  return fill(profile.user_data, &node).value_or(profile.user_data);
}

}  // namespace muster::inventory
