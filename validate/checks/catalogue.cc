// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/checks.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/json_problem.h"
#include "inventory/model/gates.h"
#include "validate/checks/check_params.h"
#include "validate/checks/check_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::validate {
namespace {

using enum inventory::GateLevel;
constexpr std::string_view kProfile = "the profile's expect",
                           kExact = "integer arithmetic: every bit",
                           kSku = "skus.json by the GPU's model, or a parameter";

// clang-format off
constexpr std::array kCatalogue{
    CatalogueRow{"collective.ready", "rounds", Quick, "which collectives this node can take part in", "muster-collective", "GPUs", "nothing is expected", "install the agent again: muster-collective lies beside it; NCCL comes with the image", "", checkCollectiveReady},
    CatalogueRow{"disk.health", "disk", Quick, "what every NVMe disk reports: warnings, media errors, spare, endurance, temperature", "nvme-cli, root", "°C, %, errors", "NVM Express: no warning, no error; the disk's own limits", "replace the disk that is named; too hot: airflow of its slot", "", checkDiskHealth},
    CatalogueRow{"disk.read", "disk", Quick, "sequential reads of every NVMe disk, past the page cache; nothing is written", "fio", "MB/s", "parameter; each disk against the median of its model", "check the disk's slot, lanes and firmware; replace it when a second one in its slot is fast", "seconds min_mbytes_per_s", checkDiskRead},
    CatalogueRow{"disk.write", "disk", Medium, "a new file on every file system of NVMe disks, written, read back past the cache, compared by CRC, and removed; no device is written to", "fio, a mounted file system", "MB/s", "what was written", "replace the disk that is named, unless its kernel log speaks of PCIe: then its slot", "mebibytes", checkDiskWrite},
    CatalogueRow{"gpu.affinity", "gpu", Quick, "every GPU has RDMA devices on its own side of the machine, on rails one of its own; HCAs sit and serve as the profile's rails say", "sysfs", "", "the machine's own PCI tree; the profile", "a NIC or riser sits in another slot than in the other nodes: compare nvidia-smi topo -m with a good one", "", checkGpuAffinity},
    CatalogueRow{"gpu.amd", "gpu", Quick, "AMD Instinct: count, model, uncorrectable ECC, temperature", "amd-smi, or rocm-smi", "", kProfile, "reset the GPU (amd-smi reset); when errors come back open an RMA with the serial", "", checkGpuAmd},
    CatalogueRow{"gpu.amd-throttle", "amd-smi", Quick, "AMD GPUs not held back by heat or their board, now and by the firmware's counters", "amd-smi of ROCm 6.3 or later", "%", "no count of heat or PROCHOT while it is watched; AMD's words for its violations", "check power leads, fans or coolant flow, and inlet temperature", "gpus window_seconds", checkGpuAmdThrottle},
    CatalogueRow{"gpu.burn", "gpu", Medium, "products in every number format, HBM patterns, copies with CRC, a product on every SM or CU, patterns in caches, all verified; power pulses", "muster-burn with CUDA and NVML, or with ROCm", "GFLOP/s, GB/s, W", kSku, "repeat with the seed in the evidence; bad again: RMA with it, slow: see gpu.throttle, gpu.power, gpu.pcie", "seconds hold_seconds min_power_share stages:word", checkGpuBurn},
    CatalogueRow{"gpu.c2c", "nvidia-smi", Quick, "every NVLink-C2C link between Grace and GPU up, all at one rate", "nvidia-smi", "links, GB/s", "the node's other GPUs, or a parameter", "power-cycle the node (AC); when the link stays down replace the superchip", "gpus links", checkGpuC2c},
    CatalogueRow{"gpu.clocks", "gpu", Quick, "the same highest clocks on all GPUs of a model", "NVML", "MHz", "the node's other GPUs", "the clocks are locked: nvidia-smi -rgc -rmc -rac", "", checkGpuClocks},
    CatalogueRow{"gpu.collective", "rounds", Quick, "this node's ranks of one group: data right, bandwidth", "muster-collective", "GB/s", "the round's floor", "one group proves nothing about a node: repeat it in another group", "", checkGpuCollective},
    CatalogueRow{"gpu.count", "gpu", Quick, "number of GPUs that NVML sees", "NVML", "", kProfile, "reseat the missing GPU or its power, look for XID 79 in the kernel log", "", checkGpuCount},
    CatalogueRow{"gpu.dcgm", "dcgm", Quick, "the site's own dcgmi diag, read fail-closed", "dcgmi", "", "DCGM", "follow the error message; isolate: run long burn-in; reset: reset the GPU", "level limit_seconds gpus may_skip:word", checkGpuDcgm},
    CatalogueRow{"gpu.driver", "gpu", Quick, "running driver version", "NVML", "", "the driver's verify in the inventory", "reinstall the pinned driver and reboot: another version is loaded", "", checkGpuDriver},
    CatalogueRow{"gpu.ecc", "gpu", Quick, "ECC on, no uncorrected error", "NVML", "", "none may be there", "reset the GPU; when errors come back, run long burn-in and open an RMA", "", checkGpuEcc},
    CatalogueRow{"gpu.fabric", "gpu", Quick, "GPUs registered with the NVSwitch fabric", "NVML, Fabric Manager", "", "state completed, status success", "check that nvidia-fabricmanager runs in the driver's version; restart it, then reset all GPUs", "", checkGpuFabric},
    CatalogueRow{"gpu.gds", "gds", Quick, "GPUDirect Storage: every GPU able, the drivers named on a direct way, the site's own gdscheck read fail-closed", "gdscheck (gds-tools)", "", "NVIDIA's gdscheck; NVMe, or the drivers that the gate names", "load nvidia-fs (or set use_pci_p2pdma in cufile.json on a kernel that has it); iommu off; compat alone copies through the host", "gpus drivers:word program:word", checkGpuGds},
    CatalogueRow{"gpu.memory-temperature", "nvidia-smi", Quick, "HBM cool enough", "nvidia-smi", "°C", "the GPU's own limit, less 5", "check airflow or coolant, and the heat sink of this GPU", "gpus max_c", checkGpuMemoryTemperature},
    CatalogueRow{"gpu.model", "gpu", Quick, "model of every GPU", "NVML", "", kProfile, "the machine has other GPUs than its profile says: correct the profile or the machine", "", checkGpuModel},
    CatalogueRow{"gpu.nccl-loopback", "nccl-loopback", Quick, "all-reduce over the node's GPUs by way of its HCAs alone: each GPU's data leaves by an HCA and comes back by one", "nccl-tests, InfiniBand or RoCE", "GB/s", "0.72 of an HCA's rate, Azure node health checks (A100: 18 of 25 GB/s; H100: 37 of 50), or a parameter", "pairs of nodes good, this slow: GPUDirect RDMA (nvidia-peermem, ACS, IOMMU), or a GPU that uses another HCA than its own", "max_bytes:word min_busbw_gbytes_per_s limit_seconds program:word", checkGpuNcclLoopback},
    CatalogueRow{"gpu.nccl-tests", "nccl-tests", Quick, "the site's own all_reduce_perf over the node's GPUs, read fail-closed", "nccl-tests", "GB/s", kSku, "compare gpu.nvlink and gpu.fabric; wrong data: run gpu.burn", "max_bytes:word min_busbw_gbytes_per_s limit_seconds program:word", checkGpuNcclTests},
    CatalogueRow{"gpu.nvlink", "gpu", Quick, "every NVLink up, no replay, recovery or CRC error", "NVML", "links, errors", kSku, "reset all GPUs; when it comes back reseat the board or the NVLink cable; XID 74 names the link", "links max_errors", checkGpuNvlink},
    CatalogueRow{"gpu.nvlink-ber", "gpu", Quick, "the bit error rate of every NVLink of generation 5 and later, after its correction", "NVML of driver 570 or later", "errors a bit", "NVIDIA DCGM 4.6: effective BER 1e-12 at most, no wrong symbol", "reset all GPUs; the same link again: reseat the board or its NVLink cable, then replace it", "max_effective_ber max_symbol_ber", checkGpuNvlinkBer},
    CatalogueRow{"gpu.nvswitch", "nvidia-smi", Quick, "every NVSwitch of an HGX board there, one firmware on all", "procfs, NVIDIA's driver", "switches", "NVIDIA DGX A100 (6), DGX H100 and H200 (4) user guides", "look for an SXID in the kernel log; power-cycle the node (AC); then replace the board", "switches firmware:word", checkGpuNvswitch},
    CatalogueRow{"gpu.pcie", "gpu", Quick, "PCIe generation and width that GPU and slot can have, replays", "NVML", "lanes, replays", kSku, "reseat the GPU or its riser; check the slot's bifurcation and speed in the BIOS", "generation width max_replays", checkGpuPcie},
    CatalogueRow{"gpu.power", "gpu", Quick, "power limit not below the board's default", "NVML", "W", kSku, "the limit was lowered (nvidia-smi -pl), or the power brake is asserted: check the PSUs", "limit_watts", checkGpuPower},
    CatalogueRow{"gpu.processes", "nvidia-smi", Quick, "no process was left behind on a GPU, no memory in use without one", "nvidia-smi", "MiB", "none may be there", "end the process that the evidence names; memory that nobody has: reset the GPU", "gpus max_used_mib allow:word", checkGpuProcesses},
    CatalogueRow{"gpu.remap", "gpu", Quick, "row remapping neither pending nor failed, rows left for more", "NVML", "rows", "none may be there; 512 are all", "pending: reset the GPU; failed: RMA", "", checkGpuRemap},
    CatalogueRow{"gpu.retired", "gpu", Quick, "page retirement not pending, fewer than 60 pages (GPUs before row remapping)", "NVML", "pages", "NVIDIA's limit", "reset the GPU; 60 pages and more: RMA", "", checkGpuRetired},
    CatalogueRow{"gpu.settings", "nvidia-smi", Quick, "persistence mode, MIG, compute mode and ECC as they must be, now and after a reset", "nvidia-smi", "", "defaults of this check, or a parameter", "start nvidia-persistenced; set MIG, compute mode or ECC with nvidia-smi, then reset the GPU", "gpus persistence:word mig:word compute_mode:word ecc:word", checkGpuSettings},
    CatalogueRow{"gpu.sram-ecc", "nvidia-smi", Quick, "no uncorrected error of SRAM or DRAM, SRAM's threshold not exceeded, few corrected errors, no repair or page retirement pending", "nvidia-smi", "errors", "none may be there; corrected: 1,000", "repair pending: reset the GPU; threshold exceeded: RMA; many corrected: run the long burn-in", "gpus max_corrected", checkGpuSramEcc},
    CatalogueRow{"gpu.stack", "gpu", Quick, "driver, CUDA and Fabric Manager that fit together", "NVML", "", "the driver's own version", "install the Fabric Manager of the driver's version and restart it", "min_cuda", checkGpuStack},
    CatalogueRow{"gpu.temperature", "gpu", Quick, "far enough below the temperature where the chip is throttled", "NVML", "°C", "NVML's slowdown threshold", "check fans, coolant flow and inlet temperature", "margin_c", checkGpuTemperature},
    CatalogueRow{"gpu.throttle", "gpu", Quick, "not throttled by heat or board, now and by the time counters", "NVML", "s", "none while it is watched, seconds since the driver was loaded", "check power leads, fans and inlet temperature", "window_seconds max_seconds", checkGpuThrottle},
    CatalogueRow{"gpu.vbios", "gpu", Quick, "one VBIOS on all GPUs of a model, InfoROM valid", "NVML", "", "the node's other GPUs, or a parameter", "flash the baseline's VBIOS; a corrupt InfoROM: RMA", "vbios:word", checkGpuVbios},
    CatalogueRow{"gpu.xgmi", "amd-smi", Quick, "every pair of AMD GPUs reached by XGMI, every link up", "amd-smi of ROCm 6.4 or later", "links", "as many links as other GPUs, or a parameter", "reset the GPUs (amd-smi reset) and look for XGMI in the kernel log; when a link stays down replace the baseboard", "gpus links", checkGpuXgmi},
    CatalogueRow{"gpu.xid", "gpu", Quick, "no XID of this boot that asks for more than a restart of the job, no fatal SXID of an NVSwitch", "kernel log", "", "NVIDIA's XID catalogue; the driver's own word for SXIDs", "as the XID's words say; drain first", "", checkGpuXid},
    CatalogueRow{"host.gemm", "host", Quick, "verified matrix products on all cores", "nothing; OpenBLAS where it is installed", "GFLOP/s", kExact, "take the node out; run memory and CPU vendor diagnostics with the seed", "n seconds min_gflops", checkHostGemm},
    CatalogueRow{"host.memory", "host", Quick, "memory patterns", "nothing", "MiB, GB/s", "what was written", "take the node out; swap the DIMM that the event log or EDAC names", "mebibytes percent_of_available seconds hold_seconds", checkHostMemory},
    CatalogueRow{"host.stream", "host", Medium, "bandwidth of every memory node by its own processors (STREAM's triad), every element right", "sysfs, procfs", "GB/s", "0.6 of what the sockets' memory can give, or a parameter; the machine's other nodes", "a DIMM or a channel is missing or slower: compare system.numa and the BMC's memory list; set all DIMMs to one speed in the BIOS", "seconds min_gbytes_per_s", checkHostStream},
    CatalogueRow{"rdma.count", "rdma", Quick, "number of RDMA devices", "sysfs", "", kProfile, "reseat or replace the missing NIC; check that its driver is loaded", "", checkRdmaCount},
    CatalogueRow{"rdma.links", "rdma", Medium, "no new error, flap or recovery of an InfiniBand link in a window, its BER proven below 1e-12", "sysfs", "errors",
                 "InfiniBand Architecture Specification", "clean and reseat the cable, then swap it, then the port; `muster fabric health` names its other end", "window_seconds min_load", checkRdmaLinks},
    CatalogueRow{"rdma.ports", "rdma", Medium, "every RDMA port active, at its rate, without errors", "sysfs", "Gb/s", "the fabric's link", "clean and reseat the cable, then swap it, then the port", "min_gbits max_errors", checkRdmaPorts},
    CatalogueRow{"system.acs", "system", Quick, "no PCIe bridge above GPUs and NICs turns traffic between them back to the processor", "sysfs, root", "", "ACS redirection off", "switch ACS off in the BIOS, or by setpci at boot; in virtual machines leave the group system out", "", checkSystemAcs},
    CatalogueRow{"system.boot-order", "system", Quick, "the UEFI firmware starts the installed system first, and no system on another disk by itself", "efivarfs, root", "", "boot: uefi of the profile; not for images of whole disks", "`muster bmc boot-order NODE --first disk`, or `efibootmgr` on the node; image the node again to have it mended", "", checkSystemBootOrder},
    CatalogueRow{"system.cpus", "system", Quick, "every processor online, sockets alike, one microcode", "sysfs", "processors", "the machine itself, or a parameter", "reseat or replace the CPU that lacks cores; update the BIOS; look for isolcpus or nosmt in kernel_args", "count", checkSystemCpus},
    CatalogueRow{"system.dimms", "system", Quick, "memory controllers without uncorrected and with few corrected errors", "EDAC", "errors", "parameter", "swap the DIMM that the label in the evidence names", "max_corrected", checkSystemDimms},
    CatalogueRow{"system.filesystems", "system", Quick, "every file system on a disk writable and not full", "procfs", "%", "3 % of blocks, 1 % of inodes", "read-only: the kernel log says which error did it, check the disk; full: remove what fills it", "min_free_percent min_free_inodes_percent", checkSystemFilesystems},
    CatalogueRow{"system.idle", "system", Quick, "the same idle states (C-states) on all processors; how long the deepest takes to wake", "sysfs", "µs", "the machine's other processors", "set C-states alike in the BIOS (power profile), or processor.max_cstate in kernel_args", "max_us", checkSystemIdle},
    CatalogueRow{"system.kernel-log", "system", Quick, "no machine check, fatal PCIe or disk error, lockup or memory shortage in this boot", "kernel log", "", "none may be there", "as the finding's words say", "", checkSystemKernelLog},
    CatalogueRow{"system.network", "system", Quick, "the node's network as it was declared when it was imaged: links, bonds and who joined them, VLANs, MTU, addresses, routes", "iproute2, root", "", "network of the profile", "no carrier, no LACP: cable and switch port; else `networkctl`, or `nmcli`, on the node says what was not applied", "", checkSystemNetwork},
    CatalogueRow{"system.numa", "system", Quick, "every memory node with processors has memory, as much as the others; every GPU and NIC knows its node", "sysfs", "GiB", "the machine's own tables", "reseat or replace the DIMM of the node that has less; update the BIOS", "", checkSystemNuma},
    CatalogueRow{"system.pcie", "system", Quick, "GPUs, RDMA NICs and NVMe disks on as many lanes and as fast as they and their slots can be, no fatal PCIe error", "sysfs", "", "device and slot; others of its model", "reseat the card or its riser; check the slot's bifurcation and speed in the BIOS", "", checkSystemPcie},
    CatalogueRow{"system.time", "system", Quick, "clock synchronised, error bounded", "the kernel's clock discipline", "ms", "parameter", "start chrony or systemd-timesyncd; check that it reaches its servers", "max_error_ms", checkSystemTime},
    CatalogueRow{"system.tuning", "system", Quick, "settings that cost speed: governor, energy preference, turbo, NUMA balancing, zone reclaim, clock source, IOMMU, ASPM", "sysfs, procfs", "", "defaults of this check, or a parameter", "set it in the BIOS or by the profile's sysctls and kernel_args", "*:word", checkSystemTuning},
};
// clang-format on

wire::CheckResult runOne(const CheckRequest& request, const Host& host) {
  wire::CheckResult result;
  result.id = request.id;
  const auto start = std::chrono::steady_clock::now();
  const auto row = findCheck(request.id);
  const auto params = jsonOrNone(request.params.empty() ? "{}" : request.params, kOrderJson);
  auto verdict = row ? runCheck(*row, params, host)
                     : checkError("this agent does not know the check; update the agent");
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (verdict.status == wire::CheckStatus::Pass &&
      result.seconds > static_cast<double>(request.deadline.count())) {
    verdict.status = wire::CheckStatus::Timeout;
    verdict.text = fmt::format("took {:.0f} s, more than its {} s; seen: {}", result.seconds,
                               request.deadline.count(), verdict.text);
  }
  result.status = verdict.status;
  result.text = std::move(verdict.text);
  result.values = std::move(verdict.values);
  result.evidence = verdict.evidence.is_null() ? "" : jsonText(verdict.evidence);
  return result;
}

}  // namespace

std::span<const CatalogueRow> catalogue() { return kCatalogue; }

const CatalogueRow* findCheck(std::string_view id) {
  const auto row = std::find_if(kCatalogue.begin(), kCatalogue.end(),
                                [id](const auto& each) { return each.id == id; });
  return row == kCatalogue.end() ? nullptr : &*row;
}

Verdict runCheck(const CatalogueRow& row, const nlohmann::json& params, const Host& host) {
  if (!params.is_object()) return checkError("the parameters are not a JSON object");
  if (const auto wrong = wrongParams(row, params); !wrong.empty()) return checkError(wrong);
  try {
    return row.run(params, host);
  } catch (const nlohmann::json::exception& error) {  // what a tool printed has another shape
    return checkError(fmt::format("{}: what it read is of another shape than is known: {}", row.id,
                                  jsonProblem(error)));
  } catch (const std::exception& error) {  // no memory: the check has not passed
    return checkError(error.what());
  }
}

std::vector<wire::CheckResult> runChecks(const std::vector<CheckRequest>& requests) {
  std::error_code error;
  Host host;
  host.programs = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<wire::CheckResult> results;
  for (const auto& request : requests) results.push_back(runOne(request, host));
  return results;
}

}  // namespace muster::validate
