// SPDX-License-Identifier: Apache-2.0
// iLO: a form with the session's key, as its web page sends it; large Smart Components in signed
// pieces (quirks.h, piece_bytes). There is no task: the flash shows in the UpdateService.
#include "base/json_output.h"
#include "bmc/redfish/basic_authentication.h"
#include "bmc/redfish/multipart.h"
#include "bmc/redfish/update_strategy.h"

#include <algorithm>
#include <cctype>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kFlashMark = "#flash";  ///< behind the UpdateService's URI
constexpr auto kPieceTimeout = 400s;  ///< 32 MiB at the slowest pace, as for other uploads
constexpr auto kPieceLimit = 20min;   ///< until the BMC has checked it
constexpr auto kPiecePoll = 2s;

/// What ties the pieces of one file together: letters and digits alone.
std::string tagOf(const std::string& name) {
  std::string tag = "muster";
  std::copy_if(name.begin(), name.end(), std::back_inserter(tag),
               [](unsigned char c) { return std::isalnum(c) != 0; });
  return tag;
}

bool isOneOf(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class FormFlash final : public UpdateStrategy {
 public:
  explicit FormFlash(UpdateServices services) : services_(std::move(services)) {}
  UpdateMethod method() const override { return UpdateMethod::HttpPush; }
  bool isOffered(const Json& service) const override {
    return !linkAt(service, "HttpPushUri").empty();
  }
  Async<RedfishReply> send(Upload upload) override {
    return pushPieces(pathOnly(linkAt(upload.service, "HttpPushUri")), std::move(upload.update),
                      std::move(upload.image));
  }
  Result<std::string> followedAt(const RedfishReply&, const std::string& service_uri,
                                 const std::string&) const override {
    return service_uri + std::string(kFlashMark);
  }

  bool follows(const std::string& uri) const override { return uri.ends_with(kFlashMark); }
  Async<TaskStatus> follow(std::string) override { return flashState(); }
  Async<TaskList> withOwn(TaskList listed) override {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(flash, co_await flashState());
    if (flash.state == TaskState::Running)
      listed.running.push_back(at.update_service + std::string(kFlashMark));
    co_return listed;
  }

 private:
  /// One flash at a time, and the UpdateService itself says how far it is.
  Async<TaskStatus> flashState() {
    CO_TRY(at, co_await services_.resources.uris());
    CO_TRY(service, co_await services_.resources.session().get(at.update_service));
    const auto state = textAt(service.body, at.quirks.flash_state + "/State");
    TaskStatus status{TaskState::Completed, 1, state};
    if (isOneOf(state, {"Uploading", "Verifying", "Writing", "Updating"})) {
      status.state = TaskState::Running;
      status.fraction = std::clamp(
          numberAt(service.body, at.quirks.flash_state + "/FlashProgressPercent").value_or(0) / 100,
          0.0, 1.0);
    } else if (state == "Error") {
      status.state = TaskState::Failed;
      if (auto words = serviceMessage(service.body); !words.empty()) status.message = words;
    }
    co_return status;
  }

  /// The vendor's signatures lie beside the file: nic.compsig, of pieces nic_part1.compsig,
  /// nic_part2.compsig, …
  Async<FirmwareImage> signatureOf(std::filesystem::path file, std::size_t piece,
                                   std::size_t pieces) {
    const auto name =
        file.stem().string() + (pieces > 1 ? fmt::format("_part{}", piece + 1) : "") + ".compsig";
    CO_TRY(signature, co_await services_.images.beside(file.parent_path() / name));
    if (!signature && pieces > 1)
      co_return fail(
          ErrorCode::InvalidInput,
          fmt::format(
              "{} goes to the BMC at {} in {} pieces, and the signature {} is missing beside "
              "it; it comes with the file from the vendor. Nothing was sent",
              file.filename().string(), services_.resources.address(), pieces, name));
    co_return signature;
  }

  Async<RedfishReply> pushPieces(std::string path, FirmwareUpdate update, FirmwareImage image) {
    CO_TRY(at, co_await services_.resources.uris());
    if (isBasic(services_.resources.session().token()))  // it stands for the password
      co_return fail(
          ErrorCode::InvalidInput,
          fmt::format("the BMC at {} takes this file by a form with a session's key, and "
                      "it has no sessions; nothing was sent. Update it by hand",
                      services_.resources.address()));
    const auto most = at.quirks.piece_bytes == 0 ? image->size()
                                                 : static_cast<std::size_t>(at.quirks.piece_bytes);
    const auto pieces = (image->size() + most - 1) / most;
    std::vector<FirmwareImage> signatures;
    for (std::size_t i = 0; i < pieces; ++i) {
      CO_TRY(signature, co_await signatureOf(update.file, i, pieces));
      signatures.push_back(std::move(signature));
    }
    const auto name = update.file.filename().string();
    for (std::size_t i = 0;; ++i) {
      Json parameters = Json::object();
      parameters["UpdateTarget"] = true;
      parameters["UpdateRepository"] = false;
      parameters["ETag"] = tagOf(name);
      parameters["Section"] = i;
      auto piece =
          pieces == 1 ? image : std::make_shared<const std::string>(image->substr(i * most, most));
      auto reply =
          co_await sendForm(path, name, std::move(parameters), std::move(piece), signatures[i]);
      if (i + 1 == pieces) co_return reply;
      // Nothing is written before the last piece is there: what breaks off before it was refused as
      // a whole.
      if (!reply)
        co_return fail(ErrorCode::Conflict, fmt::format("piece {} of {} of {} did not arrive: {}",
                                                        i + 1, pieces, name, reply.error().str()));
      if (!reply->ok()) co_return reply;
      CO_TRY_OK(co_await waitForFlash());
    }
  }

  Async<RedfishReply> sendForm(std::string path, std::string name, Json parameters,
                               FirmwareImage image, FirmwareImage signature) {
    CO_TRY_OK(co_await services_.resources.session().get(
        "/redfish/v1/SessionService"));  // so that the key is one that holds
    std::vector<std::pair<std::string, std::string>> fields;
    fields.emplace_back("sessionKey", services_.resources.session().token());
    fields.emplace_back("parameters", jsonText(parameters));
    auto body = formUpload(fields, std::move(image), name, signature);
    body.cookie = "sessionKey=" + services_.resources.session().token();
    co_return co_await services_.resources.session().upload(std::move(path), std::move(body),
                                                            kPieceTimeout);
  }

  Async<void> waitForFlash() {
    const auto until = services_.resources.clock().steady() + kPieceLimit;
    while (services_.resources.clock().steady() < until) {
      auto state = co_await flashState();
      if (!state && !state.error().canRetry()) co_return fail(std::move(state.error()));
      if (state && state->state == TaskState::Failed)
        co_return fail(ErrorCode::InvalidInput,
                       fmt::format("the BMC at {} refuses a piece: {}",
                                   services_.resources.address(), state->message));
      if (state && state->state == TaskState::Completed) co_return Result<void>();
      co_await services_.resources.clock().sleep(kPiecePoll);
    }
    co_return fail(ErrorCode::Conflict,
                   fmt::format("the BMC at {} does not come to an end with a piece",
                               services_.resources.address()));
  }

  UpdateServices services_;
};

}  // namespace

std::unique_ptr<UpdateStrategy> makeFormFlash(UpdateServices services) {
  return std::make_unique<FormFlash>(std::move(services));
}

}  // namespace muster::bmc
