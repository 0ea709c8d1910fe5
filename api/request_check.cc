// SPDX-License-Identifier: Apache-2.0
// Requests against the table: everything that a route does not name is refused, so that a mistyped
// filter does not answer the whole fleet.
#include "api/route.h"
#include "base/control_signs.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace muster::api {
namespace {

constexpr JsonLimits kOrderLimits{"the request's body",   kMaxOrderBytes,     16, 10'000,
                                  DuplicateKeys::Refused, BrokenUtf8::Refused};
constexpr std::size_t kMaxNamedNodes = 100'000;  ///< by one hostlist of a request

std::optional<std::int64_t> numberOf(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out)
                                                                  : std::nullopt;
}

std::optional<double> realOf(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out)
                                                                  : std::nullopt;
}

/// In words that also fit who typed a command, and has never seen this API.
std::string adviceOn(const Field& field) {
  return field.kind == Kind::Hostlist ? "a hostlist names nodes like this: gpu[001-128],login1"
                                      : fmt::format("what it is: {}", field.help);
}

Problem wrong(const Field& field, std::string_view why) {
  return {400, "invalid-input", fmt::format("\"{}\" {}", field.name, why), adviceOn(field)};
}

bool isWithin(const Field& field, double number) {
  return number >= static_cast<double>(field.min) && number <= static_cast<double>(field.max);
}

Problem outside(const Field& field) {
  return wrong(field, fmt::format("must be a number from {} to {}", field.min, field.max));
}

std::expected<void, Problem> checkText(const Field& field, const std::string& text) {
  const auto most = field.name == "reason" ? kMaxReasonBytes : kMaxTextBytes;
  if (text.size() > most)
    return std::unexpected(wrong(field, fmt::format("is longer than {} bytes", most)));
  if (hasControlSigns(text, field.name == "change"))
    return std::unexpected(
        wrong(field, "holds line breaks, control characters, or signs that turn words round"));
  if (field.required && text.find_first_not_of(' ') == std::string::npos)
    return std::unexpected(wrong(field, "is empty"));
  switch (field.kind) {
    case Kind::Hostlist: {
      if (text.empty() || text == "@cluster") return {};
      const auto names = inventory::expandHostlist(text);
      if (!names) return std::unexpected(wrong(field, "is no hostlist: " + names.error().text()));
      if (names->size() > kMaxNamedNodes)
        return std::unexpected(wrong(
            field, fmt::format("names {} nodes; the most is {}", names->size(), kMaxNamedNodes)));
      return {};
    }
    case Kind::Integer: {
      const auto number = numberOf(text);
      if (!number || *number < field.min || *number > field.max)
        return std::unexpected(wrong(
            field, fmt::format("must be a whole number from {} to {}", field.min, field.max)));
      return {};
    }
    case Kind::Boolean:
      if (text != "true" && text != "false")
        return std::unexpected(wrong(field, "must be true or false"));
      return {};
    case Kind::Number: {  // of a query; in a body it is a number already
      const auto number = realOf(text);
      if (!number || !isWithin(field, *number)) return std::unexpected(outside(field));
      return {};
    }
    case Kind::Text:
    case Kind::Texts:
      break;
  }
  return {};
}

bool isOfKind(const nlohmann::json& value, Kind kind) {
  switch (kind) {
    case Kind::Text:
    case Kind::Hostlist:
      return value.is_string();
    case Kind::Integer:
      return value.is_number_integer();
    case Kind::Number:
      return value.is_number();
    case Kind::Boolean:
      return value.is_boolean();
    case Kind::Texts:
      return value.is_array() && std::ranges::all_of(value, [](const auto& each) {
               return each.is_string() &&
                      !hasControlSigns(each.template get_ref<const std::string&>());
             });
  }
  return false;
}

std::string_view wordOf(Kind kind) {
  switch (kind) {
    case Kind::Text:
      return "text";
    case Kind::Hostlist:
      return "a hostlist";
    case Kind::Integer:
      return "a whole number";
    case Kind::Number:
      return "a number";
    case Kind::Boolean:
      return "true or false";
    case Kind::Texts:
      return "a list of texts";
  }
  return "";
}

std::string namesOf(const std::vector<Field>& fields) {
  std::string out;
  for (const auto& field : fields) out.append(out.empty() ? "" : ", ").append(field.name);
  return out.empty() ? "it takes none" : "there are: " + out;
}

}  // namespace

std::expected<void, Problem> checkGivenOnce(std::string_view target) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return {};
  std::set<std::string> names;
  auto rest = target.substr(mark + 1);
  rest = rest.substr(0, rest.find('#'));
  while (!rest.empty()) {
    const auto pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const auto one = io::queryOf("?" + std::string(pair));
    for (const auto& [name, value] : one)
      if (!names.insert(name).second)
        return std::unexpected(Problem(
            400, "invalid-input", fmt::format("parameter \"{}\" is given twice", printable(name)),
            "give it once; nodes, pools and racks are hostlists"));
  }
  return {};
}

std::expected<void, Problem> checkQuery(const ApiRoute& route,
                                        const std::map<std::string, std::string>& query) {
  for (const auto& [name, value] : query) {
    const auto field = std::ranges::find(route.query, name, &Field::name);
    if (field == route.query.end())
      return std::unexpected(Problem(400, "invalid-input",
                                     fmt::format("{} has no parameter \"{}\"; {}", route.path,
                                                 printable(name), namesOf(route.query))));
    if (auto good = checkText(*field, value); !good) return good;
  }
  return {};
}

std::expected<nlohmann::json, Problem> checkBody(const ApiRoute& route, std::string_view body) {
  if (route.body.empty() && body.empty()) return nlohmann::json::object();
  auto json = parseJson(body, kOrderLimits);
  if (!json) {
    Problem problem(400, "invalid-input", json.error().text(), "send one JSON object");
    return std::unexpected(std::move(problem));
  }
  if (!json->is_object())
    return std::unexpected(Problem(400, "invalid-input", "the body is no JSON object"));
  for (const auto& [name, value] : json->items()) {
    const auto field = std::ranges::find(route.body, name, &Field::name);
    if (field == route.body.end())
      return std::unexpected(Problem(400, "invalid-input",
                                     fmt::format("this order has no member \"{}\"; {}",
                                                 printable(name), namesOf(route.body))));
    if (!isOfKind(value, field->kind))
      return std::unexpected(wrong(*field, fmt::format("must be {}", wordOf(field->kind))));
    if (field->kind == Kind::Number) {
      if (!isWithin(*field, value.get<double>())) return std::unexpected(outside(*field));
      continue;
    }
    const bool is_text = value.is_string();
    auto good = value.is_array()
                    ? std::expected<void, Problem>()
                    : checkText(*field, is_text ? value.get<std::string>() : jsonText(value));
    if (!good) return std::unexpected(std::move(good).error());
  }
  for (const auto& field : route.body)
    if (field.required && !json->contains(field.name))
      return std::unexpected(wrong(field, "is missing"));
  return std::move(*json);
}

std::string Call::text(const std::string& name) const {
  for (const auto* from : {&path, &query})
    if (const auto found = from->find(name); found != from->end()) return found->second;
  if (const auto found = body.find(name); body.is_object() && found != body.end())
    return found->is_string() ? found->get<std::string>() : jsonText(*found);
  return {};
}

std::vector<std::string> Call::texts(const std::string& name) const {
  const auto found = body.find(name);
  return found == body.end() ? std::vector<std::string>() : found->get<std::vector<std::string>>();
}

double Call::number(const std::string& name) const {
  const auto found = body.find(name);
  if (body.is_object() && found != body.end() && found->is_number()) return found->get<double>();
  return realOf(text(name)).value_or(0);
}

std::int64_t Call::integer(const std::string& name, std::int64_t otherwise) const {
  return numberOf(text(name)).value_or(otherwise);
}

}  // namespace muster::api
