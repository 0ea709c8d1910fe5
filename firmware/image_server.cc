// SPDX-License-Identifier: Apache-2.0
// Firmware files for BMCs and agents that fetch for themselves. What is served is a sealed copy in
// memory whose SHA-256 was compared with the baseline's while it was made: whatever becomes of the
// file afterwards, no other byte leaves here under that digest.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "bmc/firmware_images.h"
#include "firmware/files.h"
#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kImageRoute = "/firmware/";
constexpr std::size_t kPieceBytes = 1u << 20;
constexpr auto kKeptFor = 10min;  ///< after it was asked for last; a BMC fetches in pieces

using Copy = std::shared_ptr<const io::Fd>;

Error troubleWith(const std::filesystem::path& file, const char* what) {
  return Error(ErrorCode::Unavailable,
               fmt::format("{} {}: {}", what, file.string(),
                           std::error_code(errno, std::generic_category()).message()));
}

Result<void> append(int fd, std::string_view bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(troubleWith(file, "cannot copy"));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

/// Blocking. Errors: Corrupt (another digest), Unavailable
Result<Copy> sealedCopy(const inventory::FirmwareImageFile& image) {
  const io::Fd in(::open(image.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) return fail(troubleWith(image.file, "cannot read"));
  auto out = std::make_shared<const io::Fd>(
      ::memfd_create("muster-firmware", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!out->valid()) return fail(troubleWith(image.file, "no memory for a copy of"));
  io::Sha256 digest;
  std::string piece(kPieceBytes, '\0');
  std::uintmax_t copied_bytes = 0;
  while (true) {
    const auto n = ::read(in.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(troubleWith(image.file, "cannot read"));
    if (n == 0) break;
    const auto bytes = std::string_view(piece).substr(0, static_cast<std::size_t>(n));
    if ((copied_bytes += bytes.size()) > bmc::kMaxFirmwareBytes)
      return fail(ErrorCode::Corrupt, fmt::format("{} has more than {} bytes", image.file.string(),
                                                  bmc::kMaxFirmwareBytes));
    digest.update(bytes.data(), bytes.size());
    TRY_OK(append(out->get(), bytes, image.file));
  }
  const auto seen = digest.finishHex();
  if (seen != image.sha256)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} has the SHA-256 {}, the baseline declares {}; it is not served",
                            image.file.string(), seen, image.sha256));
  if (::fcntl(out->get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
      0)
    return fail(troubleWith(image.file, "cannot seal the copy of"));
  return out;
}

class ServedImages {
 public:
  ServedImages(Clock& clock, Workers& workers) : clock_(clock), workers_(workers) {}

  Async<Copy> get(inventory::FirmwareImageFile image) {
    auto permit = co_await one_.enter();
    const auto now = clock_.steady();
    std::erase_if(copies_,
                  [&](const auto& entry) { return now - entry.second.asked_at > kKeptFor; });
    auto known = copies_.find(image.sha256);
    if (known == copies_.end()) {
      CO_TRY(copy, co_await offload<Result<Copy>>(workers_, [image] { return sealedCopy(image); }));
      known = copies_.emplace(image.sha256, Kept{std::move(copy), now}).first;
    }
    known->second.asked_at = now;
    co_return known->second.copy;
  }
  bool mayWriteLine() { return log_limit_.mayWrite("firmware"); }

 private:
  struct Kept {
    Copy copy;
    std::chrono::steady_clock::time_point asked_at;
  };
  Clock& clock_;
  Workers& workers_;
  bmc::AsyncSemaphore one_{1};          ///< a thousand nodes ask for the same file
  std::map<std::string, Kept> copies_;  ///< by digest
  LogLimit log_limit_;                  ///< of requests, which anybody may make
};

std::optional<inventory::FirmwareImageFile> declaredImage(const inventory::Cluster& cluster,
                                                          const std::string& path) {
  for (const auto& [name, baseline] : cluster.firmware) {
    for (const auto& component : baseline.components) {
      auto images = component.intermediate;
      if (!component.file.empty())
        images.push_back({component.version, component.file, component.sha256});
      for (const auto& image : images)
        if (imagePath(image) == path) return image;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string imagePath(const inventory::FirmwareImageFile& image) {
  return fmt::format("{}{}/{}", kImageRoute, image.sha256, image.file.filename().string());
}

std::vector<io::Route> imageRoutes(const inventory::Cluster& cluster, Clock& clock,
                                   Workers& workers) {
  auto images = std::make_shared<ServedImages>(clock, workers);
  auto serve = [&cluster, images](io::ServerRequest request) -> Task<io::ServerResponse> {
    const auto image = declaredImage(cluster, request.path());
    if (!image) co_return io::ServerResponse::text(404, "no baseline declares this file\n");
    const auto copy = co_await images->get(*image);
    if (copy) co_return io::ServerResponse::file({fmt::format("/proc/self/fd/{}", (*copy)->get())});
    if (images->mayWriteLine())
      logWarning("firmware", "{} asked for {}: {}", request.remote_address, request.path(),
                 copy.error().str());
    co_return io::ServerResponse::text(copy.error().code() == ErrorCode::Corrupt ? 409 : 503,
                                       copy.error().text() + "\n");
  };
  return {{"GET", std::string(kImageRoute), serve}};
}

}  // namespace muster::firmware
