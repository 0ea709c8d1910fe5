// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/bmc_host.h"

#include "base/ids.h"
#include "base/io/files.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <fstream>

namespace muster::lab::vbmc {

namespace {

constexpr std::size_t kMaxFetchedBytes = 64u << 20;
constexpr std::uintmax_t kMaxMediumBytes = 4ull << 30;

/// Key and certificate of this BMC: made once, kept over restarts, as a pin on it must hold.
Result<io::TlsIdentity> identityOf(const std::filesystem::path& folder, const BmcConfig& config) {
  auto key_file = folder / (config.domain.name + ".key"),
       certificate_file = folder / (config.domain.name + ".crt");
  std::error_code gone;
  if (std::filesystem::exists(certificate_file, gone)) {
    TRY(key, io::readFile(key_file));
    TRY(certificate, io::readFile(certificate_file));
    return io::TlsIdentity{Secret(key), certificate};
  }
  TRY(made, io::selfSigned(config.domain.name + "-bmc", {config.address}));
  TRY_OK(io::writeFileAtomic(key_file, made.key_pem.reveal(), 0600));
  TRY_OK(io::writeFileAtomic(certificate_file, made.certificate_pem));
  return made;
}

Async<std::string> fetchImage(std::string url) {
  CO_TRY(from, io::Url::parse(url));
  auto client = io::makeHttpClient();
  std::string image;
  io::HttpRequest request{.method = "GET", .url = from};
  CO_TRY(answer, co_await client->fetch(
                     std::move(request), [&image](std::string_view piece) -> Result<void> {
                       if (image.size() + piece.size() > kMaxFetchedBytes)
                         return fail(ErrorCode::InvalidInput, "the image is too large");
                       image += piece;
                       return {};
                     }));
  if (answer.status != 200)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} answered {}: {}", url, answer.status, answer.body));
  co_return image;
}

/// Whatever certificate the server shows, as BMCs do by themselves.
Async<void> fetchToFile(std::string url, std::filesystem::path to) {
  CO_TRY(from, io::Url::parse(url));
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  auto client = io::makeHttpClient({.accept_first = true});
  io::HttpRequest request{.method = "GET", .url = from};
  std::uintmax_t bytes = 0;
  const auto answer = co_await client->fetch(
      std::move(request), [&out, &bytes](std::string_view piece) -> Result<void> {
        bytes += piece.size();
        if (bytes > kMaxMediumBytes) return fail(ErrorCode::InvalidInput, "the image is too large");
        if (!out.write(piece.data(), static_cast<std::streamsize>(piece.size())))
          return fail(ErrorCode::Internal, "the image cannot be kept");
        return {};
      });
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200)
    co_return fail(ErrorCode::Unavailable, fmt::format("{} answered {}", url, answer->status));
  out.close();
  if (!out) co_return fail(ErrorCode::Internal, fmt::format("cannot write {}", to.string()));
  co_return Result<void>();
}

/// A subscriber that does not listen misses the event, as with most BMCs.
Task<void> deliverEvent(std::string url, std::string body) {
  constexpr std::chrono::seconds kPatience{10};
  const auto to = io::Url::parse(url);
  if (!to) co_return;
  auto client = io::makeHttpClient({.accept_first = true});
  io::HttpRequest request{.method = "POST", .url = *to, .body = std::move(body)};
  request.headers["Content-Type"] = "application/json";
  request.timeout = kPatience;
  const auto sent = co_await client->send(std::move(request));
  if (!sent) logWarning("vbmc", "an event was not delivered: {}", sent.error().str());
}

}  // namespace

Async<bool> DomainMachine::isOn() {
  co_return co_await offload<Result<bool>>(
      workers_, [&virt = virt_, name = spec_.name] { return virt.running(name); });
}

/// A real BMC reads the image as the machine does; this one reads all of it before the start. What
/// it cannot read is an empty drive, and the machine goes on with its own order.
Async<void> DomainMachine::start(StartOptions options) {
  std::error_code ignored;
  std::filesystem::remove(cd_, ignored);
  if (!options.cd.empty()) {
    const auto read = co_await fetchToFile(options.cd, cd_);
    if (read)
      options.cd_file = cd_;
    else
      logWarning("vbmc", "{}: the virtual CD stays empty: {}", spec_.name, read.error().str());
  }
  co_return co_await offload<Result<void>>(
      workers_, [&virt = virt_, spec = spec_, options] { return virt.start(spec, options); });
}

Async<void> DomainMachine::stop() {
  co_return co_await offload<Result<void>>(
      workers_, [&virt = virt_, name = spec_.name] { return virt.destroy(name); });
}

Async<void> DomainMachine::emptyDrive() {
  co_return co_await offload<Result<void>>(
      workers_, [&virt = virt_, spec = spec_] { return virt.emptyDrive(spec); });
}

Async<void> DomainMachine::pressButton() {
  co_return co_await offload<Result<void>>(
      workers_, [&virt = virt_, name = spec_.name] { return virt.pressButton(name); });
}

Result<std::unique_ptr<BmcHost>> BmcHost::make(asio::any_io_executor executor, Clock& clock,
                                               Workers& workers, Virt& virt,
                                               const std::filesystem::path& folder,
                                               const BmcConfig& config) {
  std::unique_ptr<BmcHost> host(new BmcHost(executor, workers, virt, folder, config));
  TRY(identity, identityOf(folder, config));
  host->listener_.address = config.address;
  host->listener_.port = config.port;
  host->listener_.identity = identity;
  ServiceOptions options;
  options.identity = {
      config.domain.name, config.domain.serial, config.domain.uuid, {config.domain.mac.str()}};
  TRY(vendor_profile, findVendorProfile(config.vendor_profile));
  options.vendor_profile = vendor_profile;
  options.account = config.account;
  options.fetch = fetchImage;
  options.state_file = folder / (config.domain.name + ".json");
  options.staging_folder = folder;
  options.went_away = [raw = host.get()] { raw->server_.reset(); };
  options.came_back = [raw = host.get()] {
    if (auto up = raw->listen(); !up) logWarning("vbmc", "{}", up.error().str());
  };
  options.deliver = [raw = host.get()](std::string url, std::string body) {
    asio::co_spawn(raw->executor_, deliverEvent(std::move(url), std::move(body)), asio::detached);
  };
  options.new_identity = [raw = host.get(), folder,
                          name = config.domain.name](const io::TlsIdentity& identity) {
    // The key first: a pair that does not fit would keep the BMC from coming up again.
    auto kept = io::writeFileAtomic(folder / (name + ".key"), identity.key_pem.reveal(), 0600);
    if (kept) kept = io::writeFileAtomic(folder / (name + ".crt"), identity.certificate_pem);
    if (!kept) logWarning("vbmc", "{}", kept.error().str());
    raw->listener_.identity = identity;
    asio::post(raw->executor_, [raw] {  // after the answer has left
      raw->server_.reset();
      if (auto up = raw->listen(); !up) logWarning("vbmc", "{}", up.error().str());
    });
  };
  TRY(service, RedfishService::make(clock, workers, host->machine_, std::move(options)));
  host->service_ = std::move(service);
  TRY_OK(host->listen());
  return host;
}

Result<void> BmcHost::listen() {
  TRY(server, io::startHttpServer(executor_, listener_));
  server->addRoutes(service_->routes());
  server_ = std::move(server);
  return {};
}

void BmcHost::stop() {
  server_.reset();
  service_->stop();
}

}  // namespace muster::lab::vbmc
