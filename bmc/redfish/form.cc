// SPDX-License-Identifier: Apache-2.0
// iLO's way: a form with the session's key, as its web page sends it; large Smart Components in
// signed pieces (quirks.h, piece_bytes).
#include "base/json_output.h"
#include "bmc/redfish/multipart.h"
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>
#include <cctype>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

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

}  // namespace

/// The vendor's signatures lie beside the file: nic.compsig, of pieces nic_part1.compsig,
/// nic_part2.compsig, …
Async<FirmwareImage> RedfishBmc::signatureOf(std::filesystem::path file, std::size_t piece,
                                             std::size_t pieces) {
  const auto name =
      file.stem().string() + (pieces > 1 ? fmt::format("_part{}", piece + 1) : "") + ".compsig";
  CO_TRY(signature, co_await images_.beside(file.parent_path() / name));
  if (!signature && pieces > 1)
    co_return fail(
        ErrorCode::InvalidInput,
        fmt::format("{} goes to the BMC at {} in {} pieces, and the signature {} is missing beside "
                    "it; it comes with the file from the vendor. Nothing was sent",
                    file.filename().string(), address(), pieces, name));
  co_return signature;
}

Async<RedfishReply> RedfishBmc::pushForm(std::string path, FirmwareUpdate update,
                                         FirmwareImage image) {
  CO_TRY(at, co_await places());
  const auto most =
      at.quirks.piece_bytes == 0 ? image->size() : static_cast<std::size_t>(at.quirks.piece_bytes);
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
    // Nothing is written before the last piece is there: what breaks off before it was refused as a
    // whole.
    if (!reply)
      co_return fail(ErrorCode::Conflict, fmt::format("piece {} of {} of {} did not arrive: {}",
                                                      i + 1, pieces, name, reply.error().str()));
    if (!reply->ok()) co_return reply;
    CO_TRY_OK(co_await waitForFlash());
  }
}

Async<RedfishReply> RedfishBmc::sendForm(std::string path, std::string name, Json parameters,
                                         FirmwareImage image, FirmwareImage signature) {
  auto look = session_->get("/redfish/v1/SessionService");  // so that the key is one that holds
  CO_TRY_OK(co_await std::move(look));
  std::vector<std::pair<std::string, std::string>> fields;
  fields.emplace_back("sessionKey", session_->token());
  fields.emplace_back("parameters", jsonText(parameters));
  auto body = formUpload(fields, std::move(image), name, signature);
  body.cookie = "sessionKey=" + session_->token();
  co_return co_await session_->upload(std::move(path), std::move(body), kPieceTimeout);
}

Async<void> RedfishBmc::waitForFlash() {
  const auto until = clock_.steady() + kPieceLimit;
  while (clock_.steady() < until) {
    auto state = co_await flashState();
    if (!state && !state.error().canRetry()) co_return fail(std::move(state.error()));
    if (state && state->state == TaskState::Failed)
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("the BMC at {} refuses a piece: {}", address(), state->message));
    if (state && state->state == TaskState::Completed) co_return Result<void>();
    co_await clock_.sleep(kPiecePoll);
  }
  co_return fail(ErrorCode::Conflict,
                 fmt::format("the BMC at {} does not come to an end with a piece", address()));
}

}  // namespace muster::bmc
