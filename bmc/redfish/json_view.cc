// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/json_view.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"

#include <cmath>
#include <cstdlib>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxMessageBytes = 400;

std::string asText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return jsonText(value);
  return {};
}

std::string asLink(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return textAt(value, "@odata.id");
  return {};
}

/// The objects that may carry Message and MessageId: error.@Message.ExtendedInfo[],
/// @Message.ExtendedInfo[], Accepted.…, error itself.
std::vector<const Json*> messagesOf(const Json& body) {
  std::vector<const Json*> found;
  for (std::string_view path : {"error/@Message.ExtendedInfo", "@Message.ExtendedInfo",
                                "Accepted/@Message.ExtendedInfo", "Messages"}) {
    const Json* list = find(body, path);
    if (!list || !list->is_array()) continue;
    for (const Json& entry : *list) {
      if (entry.is_object()) found.push_back(&entry);
    }
  }
  return found;
}

}  // namespace

const Json* find(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (!path.empty()) {
    if (!at->is_object()) return nullptr;
    const auto slash = path.find('/');
    auto it = at->find(std::string(path.substr(0, slash)));
    if (it == at->end()) return nullptr;
    at = &*it;
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return at;
}

std::string textAt(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value ? asText(*value) : std::string();
}

std::optional<double> numberAt(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  if (!value) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  if (!value->is_string()) return std::nullopt;
  const auto& text = value->get_ref<const std::string&>();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<bool> boolAt(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  const std::string text = asText(*value);
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  return std::nullopt;
}

std::string linkAt(const Json& json, std::string_view path) {
  const Json* value = find(json, path);
  return value ? asLink(*value) : std::string();
}

std::vector<std::string> linksAt(const Json& json, std::string_view path) {
  std::vector<std::string> links;
  const Json* list = find(json, path);
  if (!list || !list->is_array()) return links;
  for (const Json& entry : *list) {
    if (auto link = asLink(entry); !link.empty()) links.push_back(std::move(link));
  }
  return links;
}

std::vector<std::string> textsAt(const Json& json, std::string_view path) {
  std::vector<std::string> texts;
  const Json* list = find(json, path);
  if (!list || !list->is_array()) return texts;
  for (const Json& entry : *list) {
    if (auto text = asText(entry); !text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

Json parseLenient(std::string_view text) {
  Json json = jsonOrNone(text, kBmcJson);
  if (json.is_discarded()) return Json();
  return json;
}

std::string serviceMessage(const Json& body) {
  std::string out;
  for (const Json* entry : messagesOf(body)) {
    if (out.size() > kMaxMessageBytes) break;  // of what may be megabytes of messages
    const std::string message = textAt(*entry, "Message");
    if (message.empty() || out.find(message) != std::string::npos) continue;
    out += (out.empty() ? "" : "; ") + message;
  }
  if (out.empty()) out = textAt(body, "error/message");
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return shortened(out, kMaxMessageBytes);
}

bool hasMessageId(const Json& body, std::string_view name) {
  auto ends = [&](const std::string& id) {
    return id.size() >= name.size() && id.compare(id.size() - name.size(), name.size(), name) == 0;
  };
  for (const Json* entry : messagesOf(body)) {
    if (ends(textAt(*entry, "MessageId"))) return true;
  }
  return ends(textAt(body, "error/code"));
}

std::string vendorOf(const Json& service_root) {
  const std::string vendor = textAt(service_root, "Vendor");
  const Json* oem = find(service_root, "Oem");
  return vendor.empty() && oem && oem->is_object() && !oem->empty() ? oem->begin().key() : vendor;
}

}  // namespace muster::bmc
