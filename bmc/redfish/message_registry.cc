// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/message_registry.h"

#include "base/utf8.h"

#include <algorithm>
#include <cctype>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxRegistries = 256;
constexpr std::size_t kMaxAsked = 4;  ///< MessageRegistryFiles that may be the one
constexpr std::size_t kMaxWordsBytes = 400;
constexpr std::size_t kMaxMessages = 16;

std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// What weighs nothing is told by its severity; Redfish has two names for it.
bool isOk(const Json& message) {
  auto severity = textAt(message, "MessageSeverity");
  if (severity.empty()) severity = textAt(message, "Severity");
  return severity == "OK";
}

void append(std::string& out, const std::string& text) {
  if (text.empty() || text == "None" || text == "None." || out.size() > kMaxWordsBytes ||
      out.find(text) != std::string::npos)
    return;
  out += (out.empty() ? "" : "; ") + text;
}

std::string shown(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return shortened(text, kMaxWordsBytes);
}

}  // namespace

FailureMessages failureMessagesOf(const Json& body) {
  std::vector<const Json*> all, weighty;
  for (std::string_view path :
       {"Messages", "error/@Message.ExtendedInfo", "@Message.ExtendedInfo"}) {
    const Json* list = find(body, path);
    if (!list || !list->is_array()) continue;
    for (const Json& message : *list) {
      if (!message.is_object()) continue;
      all.push_back(&message);
      if (!isOk(message)) weighty.push_back(&message);
    }
  }
  FailureMessages out;
  for (const Json* message : weighty.empty() ? all : weighty) {
    const auto text = textAt(*message, "Message"), id = textAt(*message, "MessageId");
    append(out.words.text, text);
    append(out.words.resolution, textAt(*message, "Resolution"));
    if (text.empty() && !id.empty() && out.unresolved.size() < kMaxMessages)
      out.unresolved.push_back({id, textsAt(*message, "MessageArgs")});
  }
  // A Job of iDRAC has one text, and no list.
  if (all.empty()) append(out.words.text, textAt(body, "Message"));
  out.words.text = shown(std::move(out.words.text));
  out.words.resolution = shown(std::move(out.words.resolution));
  return out;
}

std::string filledMessage(std::string_view text, const std::vector<std::string>& args) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit =
        text[i] == '%' && i + 1 < text.size() && text[i + 1] >= '1' && text[i + 1] <= '9';
    const std::size_t at = digit ? static_cast<std::size_t>(text[i + 1] - '1') : args.size();
    if (at < args.size()) {
      out += args[at];
      ++i;
    } else {
      out += text[i];
    }
  }
  return shown(std::move(out));
}

/// Its Messages; an empty object: the service has none of this name.
Task<Json> MessageRegistries::registryOf(std::string prefix) {
  const auto* read = known_.get(resources_);
  auto known = read ? *read : std::map<std::string, Json>();
  if (const auto found = known.find(prefix); found != known.end()) co_return found->second;
  auto& session = resources_.session();
  Json messages = Json::object();
  const auto root = co_await session.get("/redfish/v1/");
  const auto collection = root ? linkAt(root->body, "Registries") : std::string();
  auto files = collection.empty() ? Result<std::vector<std::string>>(std::vector<std::string>())
                                  : co_await resources_.listed(collection, kMaxRegistries);
  std::size_t asked = 0;
  for (const auto& file : files.value_or(std::vector<std::string>())) {
    // "Base", "Base.1.13.0", "BaseMessages" …; what it is says the file itself.
    if (!lowered(lastSegment(file)).starts_with(lowered(prefix)) || ++asked > kMaxAsked) continue;
    const auto entry = co_await session.get(file);
    if (!entry || !textAt(entry->body, "Registry").starts_with(prefix + ".")) continue;
    const Json* places = find(entry->body, "Location");
    if (!places || !places->is_array()) continue;
    for (const Json& place : *places) {
      const auto language = lowered(textAt(place, "Language")), uri = textAt(place, "Uri");
      if (uri.empty() || !(language.empty() || language.starts_with("en"))) continue;
      auto registry = co_await session.get(uri, resources_.knownUris()->quirks.inventory_read);
      const Json* found = registry ? find(registry->body, "Messages") : nullptr;
      if (found && found->is_object()) messages = *found;
      break;
    }
    if (!messages.empty()) break;
  }
  known[prefix] = messages;
  known_.set(resources_, std::move(known));
  co_return messages;
}

Task<ServiceWords> MessageRegistries::lookUp(std::string id, std::vector<std::string> args) {
  ServiceWords words;
  const auto dot = id.find('.'), last = id.rfind('.');
  if (dot == std::string::npos || !resources_.knownUris()) co_return words;
  const auto messages = co_await registryOf(id.substr(0, dot));
  const auto found = messages.find(id.substr(last + 1));
  if (found == messages.end()) co_return words;
  words.text = filledMessage(textAt(*found, "Message"), args);
  append(words.resolution, textAt(*found, "Resolution"));
  words.resolution = shown(std::move(words.resolution));
  co_return words;
}

}  // namespace muster::bmc
