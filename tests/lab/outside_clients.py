# SPDX-License-Identifier: Apache-2.0
# The virtual BMC as other people's software sees it: OpenStack's sushy. Usage: outside_clients.py URL PASSWORD [if-match]
# if-match: this BMC, as AMI's, refuses what comes without If-Match, which sushy does not send for BIOS settings.
# Lists, powers, sets the boot target, reads firmware and tasks; exits 1 with what went wrong.
import os
import sys

for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests takes them over verify=False
    os.environ.pop(name, None)

import sushy
import urllib3

urllib3.disable_warnings()
url, password = sys.argv[1:3]
root = sushy.Sushy(url, auth=sushy.auth.SessionAuth("admin", password), verify=False)

systems = root.get_system_collection().get_members()
assert len(systems) == 1, systems
system = systems[0]
assert system.power_state == sushy.POWER_STATE_OFF or system.power_state == sushy.PowerState.OFF, system.power_state
assert sushy.ResetType.ON in system.get_allowed_reset_system_values(), "no On"
system.reset_system(sushy.ResetType.ON)
system.refresh(force=True)
assert system.power_state == sushy.PowerState.ON, system.power_state

system.set_system_boot_options(sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE)
system.refresh(force=True)
assert system.boot.target == sushy.BootSource.PXE, system.boot.target

assert system.bios.attributes["BootMode"] == "Uefi", system.bios.attributes
try:
    system.bios.set_attribute("SriovGlobalEnable", "Enabled")
    assert "if-match" not in sys.argv, "a BMC that wants If-Match did without"
except sushy.exceptions.HTTPError as refused:
    assert "if-match" in sys.argv and refused.status_code == 428, refused

managers = root.get_manager_collection().get_members()
assert len(managers) == 1 and managers[0].firmware_version, "no manager"
for media in managers[0].virtual_media.get_members() if "VirtualMedia" in managers[0].json else []:
    image = "https://127.0.0.1:9/a.iso"  # bmcweb takes no http
    try:
        media.insert_media(image)
    except sushy.exceptions.HTTPError as refused:
        assert "UserName" in str(refused), refused  # DGX's wants an account
        media.insert_media(image, username="none", password="none")
    media.refresh(force=True)
    assert media.inserted and media.image == image, media.json
    media.eject_media()
    media.refresh(force=True)
    assert not media.inserted, media.json
chassis = root.get_chassis_collection().get_members()
assert chassis, "no chassis"

assert system.processors.get_members(), "no processors"
update = root.get_update_service()
names = {item.identity: item.version for item in update.firmware_inventory.get_members()}
assert names, "no firmware"
tasks = root.get_task_service().tasks.get_members()
system.reset_system(sushy.ResetType.FORCE_OFF)
print("sushy", sorted(names.items()), len(tasks), "tasks")
