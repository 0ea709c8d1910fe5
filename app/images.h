// SPDX-License-Identifier: Apache-2.0
// image: building, listing, verifying, comparing, carrying and removing images.
#pragma once

#include "app/site/options.h"
#include "app/site/site_keys.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_diff.h"
#include "provision/images/image_library.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::app {

/// Hears what a build is doing, line by line.
using BuildLog = std::function<void(std::string_view)>;

class ImageBuildListener {
 public:
  virtual ~ImageBuildListener() = default;
  virtual void onLine(std::string_view text) = 0;
  virtual void onRamOs(const std::filesystem::path& kernel,
                       const std::filesystem::path& initrd) = 0;
  virtual void onImage(const std::string& name, const std::string& digest,
                       const std::filesystem::path& pack) = 0;
};
struct ImageBuildRequest {
  std::string only;  ///< an image's name, or "ramos"; empty: all and the RAM OS
  std::string over;  ///< digest of the image whose layout goes on, or its beginning; "none": laid
                     ///< out anew; empty: the newest of the same name
};
/// Builds what is missing. Errors: NotFound, InvalidInput (`over` for more than one image)
Result<void> buildImages(const Options& options, const ImageBuildRequest& request,
                         ImageBuildListener& listener);

/// Names of images of the inventory that are not in the cache, and "ramos" where a RAM OS is not;
/// `only`: of this one. Errors: NotFound (the inventory declares no such image)
Result<std::vector<std::string>> missingImages(const Options& options, const std::string& only);

struct ImageList {
  std::vector<provision::KeptImage> images;
  std::vector<std::string> not_built;  ///< declared
  std::string site_key_id;
};
Result<ImageList> listImages(const Options& options);

struct ImageCheck {
  provision::KeptImage image;
  std::vector<std::string> faults;
};
/// Unpacks and checks every chunk and signature. `name`: empty: all; `each` hears each as it is
/// done.
Result<void> verifyImages(const Options& options, const std::string& name,
                          const std::function<void(const ImageCheck&)>& each);

Result<provision::ImageDiff> compareImages(const Options& options, const std::string& from,
                                           const std::string& to);

struct CleanupPlan {
  provision::Clearing clearing;
  std::string ram_os_kept_because;  ///< empty: the one in use is known
};
/// What neither inventory nor journal nor any node names.
Result<CleanupPlan> planImageCleanup(const Options& options);
Result<void> cleanUpImages(const CleanupPlan& plan);

struct CarriedImage {
  std::string name, digest;
  std::string signer;           ///< key id
  bool signed_by_site = false;  ///< by this site's key
  bool was_present = false;     ///< of an import
};
Result<CarriedImage> exportImage(const Options& options, const std::string& name,
                                 const std::filesystem::path& file);

struct ImageImport {
  std::filesystem::path file;
  std::vector<std::filesystem::path> trusted_keys;  ///< PEM, besides this site's own
  bool allow_older = false;                         ///< although a newer one of its name is here
};
Result<CarriedImage> importImage(const Options& options, const ImageImport& request);

/// Checks the pack and signs it anew with this site's key.
Result<CarriedImage> signImage(const Options& options, const std::string& name);

}  // namespace muster::app
