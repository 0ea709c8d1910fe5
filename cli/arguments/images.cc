// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/arguments.h"
#include "cli/commands/image.h"

namespace muster::cli {

void addImageCommands(CLI::App& app, Invocation& call) {
  auto& image = addGroup(app, "image", "Images and the RAM OS");
  auto [build, build_args] =
      addCommand(image, "build", "Build what is missing: all images and the RAM OS, or one image",
                 call, imageBuild);
  build.add_option("name", build_args.only);
  build.add_option(
      "--over", build_args.over,
      "Lay the image out over the one with this digest, or anew (none); otherwise over "
      "the newest image of its name");
  build.add_flag("--direct", call.options.direct,
                 "Build in this process, also where somebody serves the site");
  asksServer(build, call);
  asksServer(
      addCommand(image, "list",
                 "List the images in the cache: size, digest, signers, profiles that use them",
                 call, imageList),
      call);
  auto [verify, verify_args] = addCommand(
      image, "verify", "Unpack and verify every chunk and every signature", call, imageVerify);
  verify.add_option("image", verify_args.name);
  auto [diff, diff_args] = addCommand(
      image, "diff", "Compare files, packages and kernels, and show what a node would fetch", call,
      imageDiff);
  diff.add_option("from", diff_args.from)->required();
  diff.add_option("to", diff_args.to)->required();
  auto [gc, gc_args] = addCommand(
      image, "gc", "Remove images that neither inventory, journal nor any node names; asks first",
      call, imageGc);
  gc.add_flag("--yes", gc_args.yes, "Do not ask");
  auto [export_command, export_args] =
      addCommand(image, "export", "Write an image to one signed file, for another controller", call,
                 imageExport);
  export_command.add_option("image", export_args.name)->required();
  export_command.add_option("file", export_args.file)->required();
  auto [import_command, import_args] =
      addCommand(image, "import", "Import an exported image into the cache", call, imageImport);
  import_command.add_option("file", import_args.file)->required();
  import_command.add_option(
      "--trust", import_args.trusted_keys,
      "Public key (PEM) of a site whose signature is accepted, besides this site's own");
  import_command.add_flag("--older", import_args.allow_older,
                          "Also when a newer image of its name is in the cache");
  auto [sign, sign_args] = addCommand(
      image, "sign", "Verify an image and sign it again with this site's key", call, imageSign);
  sign.add_option("image", sign_args.name)->required();
  addCommand(image, "key", "Print this site's public key for images", call, imageKey);
}

}  // namespace muster::cli
