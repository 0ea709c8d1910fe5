// SPDX-License-Identifier: Apache-2.0
#include "provision/images/build_unit.h"

#include "base/io/files.h"
#include "base/io/json_lines.h"
#include "base/io/peer_credentials.h"
#include "base/io/process.h"
#include "base/io/unix_client.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/images.h"
#include "provision/images/gone_watch.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_store_parts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using io::sendJsonLine;
using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::size_t kMaxLineBytes = 64u << 10;
constexpr std::chrono::seconds kRequestLimit{30};
constexpr std::chrono::hours kBuildLimit{3};
constexpr std::chrono::minutes kCopyLimit{30};
constexpr const char* kRootFs = "rootfs";
constexpr std::array<std::string_view, 4> kRamOsFiles{"vmlinuz", "initrd.img", "shim.efi",
                                                      "grub.efi"};
/// Holes stay holes: a root file system is mostly one.
Result<void> takeFile(const fs::path& from, const fs::path& to) {
  io::Command command{
      .program = "cp",
      .args = {"--sparse=always", "--no-preserve=all", "--", from.string(), to.string()}};
  command.timeout = kCopyLimit;
  auto done = io::runChecked(command);
  if (!done) return fail(std::move(done).error().within("taking what the build unit made"));
  return {};
}

class UnitBuilder final : public SystemBuilder {
 public:
  explicit UnitBuilder(fs::path socket, uid_t owner) : socket_(std::move(socket)), owner_(owner) {}

  Result<void> buildRootFs(const inventory::Image& image, const fs::path& /*work*/,
                           const fs::path& image_file, const Say& say) override {
    return ask({image.name, imageKey(image), image.arch}, say,
               [&image_file](std::string_view name) -> std::optional<fs::path> {
                 if (name != kRootFs) return std::nullopt;
                 return image_file;
               });
  }

  Result<void> buildRamOs(const inventory::RamOsSpec& spec, Architecture architecture,
                          const fs::path& /*work*/, const fs::path& out, const Say& say) override {
    return ask({"", ramOsKey(spec, architecture), architecture}, say,
               [&out](std::string_view name) -> std::optional<fs::path> {
                 if (std::ranges::find(kRamOsFiles, name) == kRamOsFiles.end()) return std::nullopt;
                 return out / name;
               });
  }

 private:
  Result<void> ask(const BuildRequest& request, const Say& say,
                   const std::function<std::optional<fs::path>(std::string_view)>& place) const {
    auto done = talk(request, say, place);
    if (!done)
      return fail(std::move(done).error().within("the build unit (muster-build@.service)"));
    return done;
  }

  Result<void> talk(const BuildRequest& request, const Say& say,
                    const std::function<std::optional<fs::path>(std::string_view)>& place) const {
    auto dialed = io::dialUnixSocket(socket_);
    if (!dialed && dialed.error().has(io::DialFailure::NobodyListens))
      return fail(ErrorCode::Unavailable,
                  fmt::format("nobody listens on {}; as root: systemctl start muster-build.socket",
                              socket_.string()));
    if (!dialed) return fail(std::move(dialed).error());
    const auto line = *std::move(dialed);
    TRY(peer, io::peerCredentials(line.get()));
    if (peer.uid != owner_)
      return fail(
          ErrorCode::Denied,
          fmt::format("{} belongs to a program of the user with uid {}, and is not believed",
                      socket_.string(), peer.uid));
    TRY_OK(sendJsonLine(line.get(), jsonOrNone(toLine(request), kRequestJson), kRequestLimit));
    io::LineReader answers(line.get(), kMaxLineBytes);
    const auto until = steady_clock::now() + kBuildLimit;
    std::size_t files = 0;
    while (true) {
      auto text = answers.next(until);
      if (!text && text.error().code() == ErrorCode::Unavailable)
        return fail(ErrorCode::Unavailable,
                    "it ended without an answer; why: journalctl -u 'muster-build@*'");
      if (!text) return fail(std::move(text).error());
      TRY(answer, parseJson(*text, kServerJson));
      if (const auto said = textOf(answer, "say"); !said.empty()) say(said);
      if (const auto code = textOf(answer, "error"); !code.empty())
        return fail(io::errorCodeOf(code), textOf(answer, "text"));
      if (const auto name = textOf(answer, "file"); !name.empty()) {
        const auto to = place(name);
        if (!to)
          return fail(ErrorCode::Corrupt,
                      fmt::format("it made \"{}\", which nobody asked for", name));
        TRY_OK(takeFile(textOf(answer, "path"), *to));
        ++files;
      }
      if (!flagOf(answer, "done")) continue;
      if (files == 0) return fail(ErrorCode::Corrupt, "it is done and has made no file");
      return {};
    }
  }

  fs::path socket_;
  uid_t owner_;
};

/// A folder of this build's own. It is locked while its process lives; those of killed ones go.
class BuildFolder {
 public:
  static Result<BuildFolder> make(const fs::path& above) {
    std::error_code error;
    for (const auto& old : fs::directory_iterator(above, error)) {
      const io::Fd fd(::open(old.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
        if (const auto gone = removeTree(old.path()); !gone)
          logWarning("image", "{}", gone.error().str());
    }
    std::string name = (above / "build-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return fail(ErrorCode::Internal, fmt::format("cannot make a folder in {}: {}", above.string(),
                                                   std::strerror(errno)));
    BuildFolder out;
    out.path = name;
    out.fd_ = io::Fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!out.fd_.valid() || ::flock(out.fd_.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(ErrorCode::Internal, "cannot lock " + name);
    // Who asked goes through it to what is ready; the tree with its device nodes is root's alone.
    if (::chmod(name.c_str(), 0755) != 0 || ::mkdir((out.path / "closed").c_str(), 0700) != 0 ||
        ::mkdir(out.work().c_str(), 0711) != 0 || ::chmod(out.work().c_str(), 0711) != 0 ||
        ::mkdir((out.path / "out").c_str(), 0755) != 0 ||
        ::chmod((out.path / "out").c_str(), 0755) != 0)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot make folders in {}: {}", name, std::strerror(errno)));
    return out;
  }
  BuildFolder(BuildFolder&& other) noexcept
      : path(std::exchange(other.path, {})), fd_(std::move(other.fd_)) {}
  BuildFolder& operator=(BuildFolder&&) = delete;
  ~BuildFolder() {
    if (path.empty()) return;
    if (const auto gone = removeTree(path); !gone) logWarning("image", "{}", gone.error().str());
  }
  fs::path work() const { return path / "closed" / "work"; }
  fs::path path;

 private:
  BuildFolder() = default;
  io::Fd fd_;
};

Result<void> build(const BuildRequest& request, const fs::path& work, const fs::path& made,
                   SystemBuilder& builder, const BuildDeclarations& declared, const Say& say) {
  const auto meant = [&request](const std::string& key, const std::string& what) -> Result<void> {
    if (key == request.key) return {};
    return fail(ErrorCode::Conflict,
                fmt::format("{} is declared otherwise in the inventory that the build unit reads "
                            "(MUSTER_INVENTORY in /etc/muster/muster.conf): give it that one, and "
                            "try again when nobody changes it",
                            what));
  };
  if (request.image.empty()) {
    TRY(spec, declared.ram_os());
    TRY_OK(meant(ramOsKey(spec, request.architecture), "the RAM OS"));
    return builder.buildRamOs(spec, request.architecture, work, made, say);
  }
  TRY(image, declared.image(request.image));
  TRY_OK(meant(imageKey(image), "image " + image.name));
  return builder.buildRootFs(image, work, made / kRootFs, say);
}

Result<void> answer(int connection, const fs::path& above, SystemBuilder& builder,
                    const BuildDeclarations& declared, const BuildAccess& way) {
  io::LineReader asked(connection, kMaxLineBytes);
  TRY(line, asked.next(kRequestLimit));
  TRY(request, parseBuildRequest(line));
  TRY(folder, BuildFolder::make(above));
  const auto say = [connection](std::string_view text) {
    (void)sendJsonLine(connection, {{"say", text}}, kRequestLimit);
  };
  {
    const GoneWatch watch(connection, "who asked for the build has gone");
    auto work = folder.work();
    if (way) {
      TRY(seen, way(work));
      work = std::move(seen);
    }
    TRY_OK(build(request, work, folder.path / "out", builder, declared, say));
  }
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder.path / "out", error)) {
    if (!file.is_regular_file(error)) continue;
    fs::permissions(file.path(), fs::perms(0644), error);
    TRY_OK(sendJsonLine(connection,
                        {{"file", file.path().filename().string()}, {"path", file.path().string()}},
                        kRequestLimit));
  }
  TRY_OK(sendJsonLine(connection, {{"done", true}}, kRequestLimit));
  (void)asked.next(kCopyLimit);  // the connection ends when all is copied
  return {};
}

}  // namespace

std::string toLine(const BuildRequest& request) {
  json out = {{"key", request.key}};
  if (request.image.empty())
    out["ramos"] = traitsOf(request.architecture).name;
  else
    out["image"] = request.image;
  return jsonText(out);
}

Result<BuildRequest> parseBuildRequest(std::string_view line) {
  TRY(asked, parseJson(line, kRequestJson));
  BuildRequest out;
  out.image = textOf(asked, "image");
  out.key = textOf(asked, "key");
  const auto ramos = textOf(asked, "ramos");
  for (const auto& traits : kArchitectures)
    if (ramos == traits.name) out.architecture = traits.architecture;
  const bool known = !out.image.empty() || ramos == traitsOf(out.architecture).name;
  if (!asked.is_object() || asked.size() != 2 || out.key.empty() || !known)
    return fail(
        ErrorCode::InvalidInput,
        R"(a build is asked for as {"image": NAME, "key": …} or {"ramos": ARCH, "key": …})");
  return out;
}

std::unique_ptr<SystemBuilder> makeUnitBuilder(fs::path socket, uid_t owner) {
  return std::make_unique<UnitBuilder>(std::move(socket), owner);
}

std::unique_ptr<SystemBuilder> makeSystemBuilder() {
  std::error_code error;
  if (::geteuid() != 0 && fs::exists(kBuildSocket, error)) return makeUnitBuilder(kBuildSocket);
  return makePackageBuilder();
}

Result<void> serveBuildRequest(int connection, const fs::path& folder, SystemBuilder& builder,
                               const BuildDeclarations& declared, const BuildAccess& way) {
  auto done = answer(connection, folder, builder, declared, way);
  if (done) return done;
  (void)sendJsonLine(
      connection,
      {{"error", std::string(toString(done.error().code()))}, {"text", done.error().str()}},
      kRequestLimit);
  return done;
}

}  // namespace muster::provision
