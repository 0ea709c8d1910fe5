// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/hip/hip_api.h"

#include "validate/burn/hip/library.h"

#include <cstring>

namespace muster::burn::hip {

std::string architectureOf(const DeviceProperties& properties) {
  const std::string_view full(properties.architecture,
                              strnlen(properties.architecture, sizeof properties.architecture));
  return std::string(full.substr(0, full.find(':')));
}

Result<HipApi> HipApi::open() {
  TRY(library, Library::open("MUSTER_HIP", {"libamdhip64.so.7", "libamdhip64.so.6"},
                             "install ROCm 6.2 or later (hip-runtime-amd)"));
  HipApi api{};
  library.load(api.getDeviceCount, "hipGetDeviceCount");
  library.load(api.getDevice, "hipGetDevice");
  library.load(api.setDevice, "hipSetDevice");
  library.load(api.getDeviceProperties, "hipGetDevicePropertiesR0600");
  library.load(api.deviceGetPciBusId, "hipDeviceGetPCIBusId");
  library.load(api.deviceCanAccessPeer, "hipDeviceCanAccessPeer");
  library.load(api.deviceEnablePeerAccess, "hipDeviceEnablePeerAccess");
  library.load(api.memGetInfo, "hipMemGetInfo");
  library.load(api.malloc, "hipMalloc");
  library.load(api.free, "hipFree");
  library.load(api.hostRegister, "hipHostRegister");
  library.load(api.hostUnregister, "hipHostUnregister");
  library.load(api.memcpyAsync, "hipMemcpyAsync");
  library.load(api.memcpyPeerAsync, "hipMemcpyPeerAsync");
  library.load(api.memsetAsync, "hipMemsetAsync");
  library.load(api.streamCreateWithFlags, "hipStreamCreateWithFlags");
  library.load(api.streamDestroy, "hipStreamDestroy");
  library.load(api.streamSynchronize, "hipStreamSynchronize");
  library.load(api.streamQuery, "hipStreamQuery");
  library.load(api.streamWaitEvent, "hipStreamWaitEvent");
  library.load(api.eventCreate, "hipEventCreate");
  library.load(api.eventDestroy, "hipEventDestroy");
  library.load(api.eventRecord, "hipEventRecord");
  library.load(api.eventSynchronize, "hipEventSynchronize");
  library.load(api.eventElapsedTime, "hipEventElapsedTime");
  library.load(api.getLastError, "hipGetLastError");
  library.load(api.getErrorString, "hipGetErrorString");
  library.load(api.moduleLoadData, "hipModuleLoadData");
  library.load(api.moduleUnload, "hipModuleUnload");
  library.load(api.moduleGetFunction, "hipModuleGetFunction");
  library.load(api.moduleLaunchKernel, "hipModuleLaunchKernel");
  TRY_OK(library.complete());
  return api;
}

Result<HipBlasLtApi> HipBlasLtApi::open() {
  TRY(library, Library::open("MUSTER_HIPBLASLT", {"libhipblaslt.so.1", "libhipblaslt.so.0"},
                             "install hipblaslt of ROCm 6.2 or later"));
  HipBlasLtApi api{};
  library.load(api.create, "hipblasLtCreate");
  library.load(api.destroy, "hipblasLtDestroy");
  library.load(api.getVersion, "hipblasLtGetVersion");
  library.load(api.matmulDescCreate, "hipblasLtMatmulDescCreate");
  library.load(api.matmulDescDestroy, "hipblasLtMatmulDescDestroy");
  library.load(api.matmulDescSetAttribute, "hipblasLtMatmulDescSetAttribute");
  library.load(api.matrixLayoutCreate, "hipblasLtMatrixLayoutCreate");
  library.load(api.matrixLayoutDestroy, "hipblasLtMatrixLayoutDestroy");
  library.load(api.matmulPreferenceCreate, "hipblasLtMatmulPreferenceCreate");
  library.load(api.matmulPreferenceDestroy, "hipblasLtMatmulPreferenceDestroy");
  library.load(api.matmulPreferenceSetAttribute, "hipblasLtMatmulPreferenceSetAttribute");
  library.load(api.matmulAlgoGetHeuristic, "hipblasLtMatmulAlgoGetHeuristic");
  library.load(api.matmul, "hipblasLtMatmul");
  TRY_OK(library.complete());
  return api;
}

}  // namespace muster::burn::hip
