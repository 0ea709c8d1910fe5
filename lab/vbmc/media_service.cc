// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/media_service.h"

#include "base/json_input.h"
#include "lab/vbmc/resource_parts.h"

#include <algorithm>
#include <array>

namespace muster::lab::vbmc {

namespace {

constexpr std::array<std::string_view, 4> kProtocols = {"HTTP", "HTTPS", "NFS", "CIFS"};
constexpr const char *kInsert = "/Actions/VirtualMedia.InsertMedia",
                     *kEject = "/Actions/VirtualMedia.EjectMedia";

}  // namespace

std::string MediaService::collectionPath() const {
  if (bmc_.behaviour.drives.empty()) return {};
  return (bmc_.behaviour.drives_of_system ? kSystem : kManager) + "/VirtualMedia";
}

const MediaDrive* MediaService::driveAt(const std::string& path) const {
  const auto all = collectionPath();
  if (all.empty() || !path.starts_with(all + "/")) return nullptr;
  const auto id = std::string_view(path).substr(all.size() + 1);
  const auto found = std::ranges::find(bmc_.behaviour.drives, id, &MediaDrive::id);
  return found == bmc_.behaviour.drives.end() ? nullptr : &*found;
}

std::optional<nlohmann::json> MediaService::resource(const std::string& path) const {
  const auto all = collectionPath();
  if (all.empty()) return std::nullopt;
  if (path == all) {
    std::vector<std::string> ids;
    for (const auto& drive : bmc_.behaviour.drives) ids.emplace_back(drive.id);
    return collection(path, "VirtualMediaCollection", ids);
  }
  const auto* drive = driveAt(path);
  if (!drive) return std::nullopt;
  json result = head(path, "VirtualMedia.v1_4_0.VirtualMedia", "Virtual Removable Media");
  const auto held = bmc_.state.media.find(std::string(drive->id));
  const bool inserted = held != bmc_.state.media.end();
  result["MediaTypes"] = json::array();
  for (const auto type : drive->types)
    if (!type.empty()) result["MediaTypes"].push_back(type);
  result["Inserted"] = inserted;
  result["Image"] = inserted ? json(held->second.image) : json(nullptr);
  result["ImageName"] =
      inserted ? json(held->second.image.substr(held->second.image.rfind('/') + 1)) : json(nullptr);
  result["ConnectedVia"] = inserted ? "URI" : "NotConnected";
  result["WriteProtected"] = inserted ? json(held->second.write_protected) : json(nullptr);
  result["Actions"]["#VirtualMedia.InsertMedia"]["target"] = path + kInsert;
  if (inserted || !bmc_.behaviour.eject_only_when_inserted)
    result["Actions"]["#VirtualMedia.EjectMedia"]["target"] = path + kEject;
  return result;
}

Task<std::optional<io::ServerResponse>> MediaService::post(io::ServerRequest request,
                                                           std::string path) {
  const auto actions = path.find("/Actions/VirtualMedia.");
  const auto* drive = actions == std::string::npos ? nullptr : driveAt(path.substr(0, actions));
  if (!drive) co_return std::nullopt;
  if (path.substr(actions) == kInsert) co_return insert(*drive, request);
  if (path.substr(actions) != kEject) co_return std::nullopt;
  if (bmc_.state.media.erase(std::string(drive->id)) == 0)
    co_return redfishError(400, "Base.1.8.NoOperation", "There is no medium in the drive.");
  bmc_.note("virtual media were ejected");
  bmc_.save();
  const auto out = co_await bmc_.machine.emptyDrive();
  if (!out) bmc_.note("the drive of the machine could not be emptied: " + out.error().text());
  co_return io::ServerResponse::text(204, "");
}

io::ServerResponse MediaService::insert(const MediaDrive& drive, const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto image = body.is_object() && body.contains("Image") && body["Image"].is_string()
                         ? body["Image"].get<std::string>()
                         : std::string();
  if (image.empty())
    return redfishError(400, "Base.1.8.ActionParameterMissing", "Image is missing.",
                        "Name the image by its URI.");
  const auto& schemes = bmc_.behaviour.media_schemes;
  if (std::ranges::none_of(
          schemes, [&](auto scheme) { return !scheme.empty() && image.starts_with(scheme); }))
    return redfishError(400, "Base.1.8.ActionParameterValueFormatError",
                        "Image is not a URI that this BMC reads.", "Use another protocol.");
  if (bmc_.behaviour.media_wants_account && !body.contains("UserName"))
    return redfishError(
        400, "Base.1.8.ActionParameterMissing",
        "The action VirtualMedia.InsertMedia requires the parameter UserName to be present.");
  if (body.contains("TransferProtocolType") && std::ranges::none_of(kProtocols, [&](auto name) {
        return body["TransferProtocolType"] == name;
      }))
    return redfishError(400, "Base.1.8.ActionParameterValueNotInList",
                        "TransferProtocolType is not one that this BMC speaks.");
  if (bmc_.state.media.contains(std::string(drive.id)))
    return redfishError(409, "Base.1.8.ResourceInUse", "There is a medium in the drive.",
                        "Eject it first.");
  const bool read_only = !body.contains("WriteProtected") || body["WriteProtected"] != false;
  bmc_.state.media[std::string(drive.id)] = {image, read_only};
  bmc_.note("virtual media were inserted");
  bmc_.save();
  return io::ServerResponse::text(204, "");
}

}  // namespace muster::lab::vbmc
