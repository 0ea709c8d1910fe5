#include "validate/checks/rdma_count.h"

#include <algorithm>

namespace muster::validate {

Verdict countRdmaDevices(const std::filesystem::path& folder, int expected) {
  std::vector<std::string> devices;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) devices.push_back(entry.path().filename().string());
  std::sort(devices.begin(), devices.end());
  const auto seen = static_cast<int>(devices.size());
  Verdict verdict = seen == expected ? pass(fmt::format("{} RDMA NICs", seen)) : failed(fmt::format("{} RDMA NICs seen, {} expected", seen, expected));
  verdict.values = {{"rdma_devices", static_cast<double>(seen)}};
  verdict.evidence = {{"devices", devices}, {"folder", folder.string()}};
  return verdict;
}

Verdict checkRdmaCount(const nlohmann::json& params) { return countRdmaDevices("/sys/class/infiniband", params.at("count").get<int>()); }

}  // namespace muster::validate
