// SPDX-License-Identifier: Apache-2.0
// What a PATCH asks for, as DSP0266 wants it answered: annotations are not properties; a property
// that the service does not change is named, and refuses the request only where nothing else is
// left.
#pragma once

#include "lab/vbmc/messages.h"

#include "base/json_input.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::lab::vbmc {

class PatchBody {
 public:
  /// `takes`: the properties that this resource changes.
  static PatchBody read(const io::ServerRequest& request,
                        std::initializer_list<std::string_view> takes) {
    PatchBody out;
    const auto body = jsonOrNone(request.body, kRequestJson);
    out.is_object_ = body.is_object();
    if (!out.is_object_) return out;
    for (const auto& [name, value] : body.items()) {
      if (name.find('@') != std::string::npos) continue;
      if (std::ranges::find(takes, name) != takes.end())
        out.wanted_[name] = value;
      else
        out.unknown_.push_back(name);
    }
    return out;
  }

  const nlohmann::json& wanted() const { return wanted_; }
  bool has(const char* name) const { return wanted_.contains(name); }

  /// Why nothing of it can be done; nullopt: something can.
  std::optional<io::ServerResponse> refusal() const {
    if (!is_object_)
      return redfishError(400, "Base.1.8.MalformedJSON", "The body is not a JSON object.",
                          "Send a JSON object.");
    if (!wanted_.empty()) return std::nullopt;
    if (unknown_.empty())
      return redfishError(400, "Base.1.8.NoOperation",
                          "The request contains nothing that could be changed.",
                          "Name a property to change.");
    nlohmann::json error = {{"code", "Base.1.8.GeneralError"},
                            {"message", "None of the properties can be changed."},
                            {"@Message.ExtendedInfo", messages()}};
    return io::ServerResponse::json(400, jsonText(nlohmann::json{{"error", std::move(error)}}));
  }

  /// Done. Where a part could not be, the resource as it is now, and which part that was.
  io::ServerResponse answer(nlohmann::json resource) const {
    if (unknown_.empty()) return io::ServerResponse::text(204, "");
    resource["@Message.ExtendedInfo"] = messages();
    return io::ServerResponse::json(200, jsonText(resource));
  }
  bool names_unknown() const { return !unknown_.empty(); }

 private:
  nlohmann::json messages() const {
    auto out = nlohmann::json::array();
    for (const auto& name : unknown_) {
      auto message =
          messageJson("Base.1.8.PropertyUnknown",
                      fmt::format("The property {} is not one that can be changed here.", name),
                      "Warning", "Remove the property from the request.");
      message["MessageArgs"] = {name};
      message["RelatedProperties"] = {"#/" + name};
      out.push_back(std::move(message));
    }
    return out;
  }

  bool is_object_ = false;
  nlohmann::json wanted_ = nlohmann::json::object();
  std::vector<std::string> unknown_;
};

}  // namespace muster::lab::vbmc
