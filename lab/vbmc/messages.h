// SPDX-License-Identifier: Apache-2.0
// Redfish answers: errors with extended information, and the paths that several files share.
#pragma once

#include "base/io/http.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <string>

namespace muster::lab::vbmc {

inline const std::string kRoot = "/redfish/v1";
inline const std::string kSystem = kRoot + "/Systems/system";
inline const std::string kManager = kRoot + "/Managers/bmc";
inline const std::string kSessions = kRoot + "/SessionService/Sessions";
inline const std::string kAccounts = kRoot + "/AccountService/Accounts";
inline const std::string kAccount = kAccounts + "/1";
inline const std::string kRoles = kRoot + "/AccountService/Roles";
inline const std::string kInventory = kRoot + "/UpdateService/FirmwareInventory";
inline const std::string kUpload = kRoot + "/UpdateService/upload";
inline const std::string kSimpleUpdate =
    kRoot + "/UpdateService/Actions/UpdateService.SimpleUpdate";
inline const std::string kTasks = kRoot + "/TaskService/Tasks";
inline const std::string kJobs = kManager + "/Oem/Dell/Jobs";
inline const std::string kChassis = kRoot + "/Chassis";
inline const std::string kBios = kSystem + "/Bios";
inline const std::string kSystemSettings = kSystem + "/SD";
inline const std::string kBootOptions = kSystem + "/BootOptions";
inline const std::string kIloUpload = "/cgi-bin/uploadFile";
inline const std::string kSel = kSystem + "/LogServices/SEL";
inline const std::string kCertificateService = kRoot + "/CertificateService";
inline const std::string kHpeSecurity = kManager + "/SecurityService";
inline const std::string kHpeHttpsCert = kHpeSecurity + "/HttpsCert";
inline const std::string kHttpsCertificate = kManager + "/NetworkProtocol/HTTPS/Certificates/1";
inline const std::string kEventService = kRoot + "/EventService";
inline const std::string kEventStream = kEventService + "/SSE";
inline const std::string kSubscriptions = kEventService + "/Subscriptions";
inline const std::string kTestEvent = kEventService + "/Actions/EventService.SubmitTestEvent";
inline const std::string kMetadata = kRoot + "/$metadata";
inline const std::string kServiceDocument = kRoot + "/odata";
inline const std::string kFaults = "/lab/faults";

inline nlohmann::json messageJson(const std::string& id, const std::string& text,
                                  const std::string& severity, const std::string& resolution) {
  return {{"@odata.type", "#Message.v1_1_1.Message"},
          {"MessageId", id},
          {"Message", text},
          {"MessageSeverity", severity},
          {"Severity", severity},
          {"Resolution", resolution}};
}

inline io::ServerResponse redfishError(int status, const std::string& id, const std::string& text,
                                       const std::string& resolution = "None.") {
  nlohmann::json body;
  body["error"] = {{"code", id},
                   {"message", text},
                   {"@Message.ExtendedInfo", {messageJson(id, text, "Critical", resolution)}}};
  return io::ServerResponse::json(status, jsonText(body));
}

inline nlohmann::json linkTo(const std::string& path) { return {{"@odata.id", path}}; }

}  // namespace muster::lab::vbmc
