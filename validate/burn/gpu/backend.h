// SPDX-License-Identifier: Apache-2.0
// What burning a GPU asks of a vendor beside its runtime: kernels, products by its library,
// sensors. Over CUDA with cuBLASLt and NVML (cuda/), over HIP with hipBLASLt and the kernel's files
// (hip/).
#pragma once

#include "validate/burn/device.h"
#include "validate/burn/gpu/product.h"
#include "validate/burn/gpu/runtime.h"

namespace muster::burn::gpu {

struct GpuFacts {
  std::string model, serial, pci;      ///< pci: "0000:3b:00.0"
  int units = 0;                       ///< SMs or CUs
  int shared_bytes = 0;                ///< of a unit, that one block may take
  std::uint64_t last_cache_bytes = 0;  ///< L2
  std::optional<int> memory_node;      ///< of the host, that is near
  std::vector<Dtype> dtypes;           ///< that its matrix units multiply
  std::vector<Dtype> by_name;          ///< of these: only where they are asked for
  Float8 float8 = Float8::Ocp;
  std::string library;  ///< that multiplies, with its version
};

class Backend : public Runtime {
 public:
  virtual Result<GpuFacts> facts(int device) const = 0;
  virtual Telemetry sample(int device) = 0;
  virtual Kernels& kernels() = 0;
  virtual ScaleLayout scaleLayout() const { return ScaleLayout::Tiles; }
  /// Errors: Internal (the library knows no such product)
  virtual Result<std::unique_ptr<Product>> prepareProduct(int device, Dtype dtype, int n) const = 0;
};

}  // namespace muster::burn::gpu
