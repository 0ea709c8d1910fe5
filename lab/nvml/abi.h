// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that the simulated library offers: names, numbers and layouts
// as in NVIDIA's public nvml.h (docs.nvidia.com/deploy/nvml-api). Only what a caller can see is
// repeated here.
#pragma once

extern "C" {

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;

enum : nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_UNKNOWN = 999,
};

enum { NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 };
enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum {
  NVML_PERF_POLICY_POWER = 0,
  NVML_PERF_POLICY_THERMAL = 1,
  NVML_PERF_POLICY_SYNC_BOOST = 2,
  NVML_PERF_POLICY_RELIABILITY = 5
};

constexpr unsigned NVML_NVLINK_MAX_LINKS = 18;

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device;
  unsigned pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct nvmlMemory_t {
  unsigned long long total, free, used;  // bytes
};
struct nvmlGpuFabricInfo_t {
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId;
  unsigned char state;
};
struct nvmlGpuFabricInfoV_t {  // version 2
  unsigned version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId;
  unsigned char state;
  unsigned healthMask;
};
struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  int valueType;
  nvmlReturn_t nvmlReturn;
  union {
    double dVal;
    unsigned uiVal;
    unsigned long long ullVal;
  } value;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;  // percent
};
struct nvmlViolationTime_t {
  unsigned long long referenceTime, violationTime;  // microseconds, nanoseconds
};

}  // extern "C"

constexpr unsigned NVML_GPU_FABRIC_INFO_V2 = sizeof(nvmlGpuFabricInfoV_t) | 2u << 24;
enum { NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3 };
// A bit error rate: mantissa << 8 | exponent, "15e-255" where there was no error.
constexpr unsigned NVML_NVLINK_BER_MANTISSA_SHIFT = 8, NVML_NVLINK_BER_MANTISSA_WIDTH = 0xf,
                   NVML_NVLINK_BER_EXP_SHIFT = 0, NVML_NVLINK_BER_EXP_WIDTH = 0xff;
enum {
  NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS = 208,
  NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER = 220,
  NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER = 222,
  NVML_FI_DEV_NVLINK_COUNT_FIRST = 201,
  NVML_FI_DEV_NVLINK_COUNT_LAST = 222
};

static_assert(sizeof(nvmlFieldValue_t) == 40 && sizeof(nvmlGpuFabricInfoV_t) == 36);
static_assert(sizeof(nvmlPciInfo_t) == 68 && sizeof(nvmlMemory_t) == 24 &&
              sizeof(nvmlViolationTime_t) == 16);
