#include "firmware/files.h"

#include "base/io/crypto.h"

namespace muster::firmware {

std::string whyNotFlashable(const inventory::FirmwareComponent& component, const std::string& file_state) {
  if (file_state == kFileOk) return {};
  return fmt::format("{} {} cannot be installed: {}; fetch the file again, or correct file and sha256 in the baseline", component.name, component.version,
                     file_state);
}

std::string whyNotFlashable(const inventory::FirmwareBaseline& baseline, const inventory::FirmwareComponent& component,
                            const lifecycle::Subject& subject, const lifecycle::FactSet& facts) {
  if (component.file.empty()) {
    return fmt::format("baseline {} declares {} {} without a file, so it is only compared; install it by other means, or declare file and sha256",
                       baseline.name, component.name, component.version);
  }
  return whyNotFlashable(component, facts.value(subject, fileFacet(component.name)).value_or(std::string(kFileOk)));
}

Async<std::string> FirmwareFiles::state(inventory::FirmwareComponent component) {
  const auto& file = component.file;
  auto enter = one_.enter();
  auto permit = co_await std::move(enter);
  std::error_code error;
  const auto size_bytes = std::filesystem::file_size(file, error);
  if (error) co_return fmt::format("{}: {}", file.string(), error.message());
  const auto changed = std::filesystem::last_write_time(file, error);
  auto known = hashed_.find(file);
  if (known == hashed_.end() || known->second.size_bytes != size_bytes || known->second.changed != changed) {
    auto hash = offload<Result<std::string>>(workers_, [file] { return io::sha256File(file); });
    auto sha256 = co_await std::move(hash);
    if (!sha256) co_return sha256.error().str();
    known = hashed_.insert_or_assign(file, Hashed{size_bytes, changed, *sha256}).first;
  }
  if (known->second.sha256 == component.sha256) co_return std::string(kFileOk);
  co_return fmt::format("{} has the SHA-256 {}, the baseline declares {}", file.string(), known->second.sha256, component.sha256);
}

}  // namespace muster::firmware
