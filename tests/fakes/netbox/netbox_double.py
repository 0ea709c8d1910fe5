#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NetBox's REST API as the serializers of netbox-community/netbox (4.x), the beginning of its
published OpenAPI description and public answers of NetBox 4.3 say it: tokens, filters, pages, and
whole records of devices, interfaces and IP addresses. No NetBox was asked.

  netbox_double.py SITE.json

prints its port. SITE.json: {"token", "devices": [...], "mode"}; see `site` below. `mode` makes it
answer as a NetBox does that is broken, or that something else stands before. It is read again for
each request."""
import http.server
import json
import sys
import urllib.parse

SITE = sys.argv[1]
MAX_PAGE_SIZE = 1000  # MAX_PAGE_SIZE of a NetBox that nobody has configured
PAGE_SIZE = 50


def site():
    with open(SITE) as file:
        return json.load(file)


class Site:
    """Devices by name: {"name", "site", "tags", "rack", "position", "serial", "role",
    "interfaces": [{"name", "mac", "mgmt_only", "addresses", "peer": [device, port]}],
    "primary": address, "oob": address}."""

    def __init__(self, base, data):
        self.base = base
        self.old_macs = data.get("old_macs", False)
        self.devices, self.interfaces, self.addresses = [], [], []
        for number, device in enumerate(data["devices"], start=1):
            self.add(number, device)

    def nested(self, path, number, name, **more):
        return {"id": number, "url": f"{self.base}/api/{path}/{number}/", "display": name,
                "name": name, **more}

    def named(self, path, number, name):
        return self.nested(path, number, name, slug=name, description="")

    def ip(self, number, address):
        return {"id": number, "url": f"{self.base}/api/ipam/ip-addresses/{number}/",
                "display": address,
                "family": {"value": 6 if ":" in address else 4,
                           "label": "IPv6" if ":" in address else "IPv4"},
                "address": address, "description": ""}

    def add(self, number, device):
        by_address = {}
        brief = self.nested("dcim/devices", number, device["name"], description="")
        for interface in device.get("interfaces", []):
            self.add_interface(brief, interface, device, by_address)
        rack = device.get("rack")
        primary = device.get("primary")
        oob = device.get("oob")
        for address in (primary, oob):
            if address and address not in by_address:
                by_address[address] = self.ip(9000 + len(by_address), address)
        self.devices.append({
            "id": number,
            "url": f"{self.base}/api/dcim/devices/{number}/",
            "display_url": f"{self.base}/dcim/devices/{number}/",
            "display": device["name"],
            "name": device["name"],
            "device_type": self.nested(
                "dcim/device-types", 1, "HGX H100",
                manufacturer=self.named("dcim/manufacturers", 1, "supermicro"),
                model="HGX H100", slug="hgx-h100", description=""),
            "role": {**self.named("dcim/device-roles", 1, device.get("role", "gpu")), "_depth": 0},
            "tenant": None,
            "platform": None,
            "serial": device.get("serial", ""),
            "asset_tag": None,
            "site": self.named("dcim/sites", 1, device.get("site", "hall-2")),
            "location": None,
            "rack": self.nested("dcim/racks", 1, rack, description="") if rack else None,
            "position": device.get("position"),
            "face": {"value": "front", "label": "Front"} if rack else None,
            "latitude": None,
            "longitude": None,
            "parent_device": None,
            "status": {"value": "active", "label": "Active"},
            "airflow": None,
            "primary_ip": by_address.get(primary),
            "primary_ip4": by_address.get(primary),
            "primary_ip6": None,
            "oob_ip": by_address.get(oob),
            "cluster": None,
            "virtual_chassis": None,
            "vc_position": None,
            "vc_priority": None,
            "description": "",
            "comments": "",
            "config_template": None,
            "config_context": {},
            "local_context_data": None,
            "tags": [{**self.named("extras/tags", 1, tag), "color": "9e9e9e"}
                     for tag in device.get("tags", [])],
            "custom_fields": {},
            "created": "2025-08-11T14:37:28.180540Z",
            "last_updated": "2025-08-11T18:12:23.512163Z",
            "console_port_count": 0, "console_server_port_count": 0, "power_port_count": 1,
            "power_outlet_count": 0, "interface_count": len(device.get("interfaces", [])),
            "front_port_count": 0, "rear_port_count": 0, "device_bay_count": 0,
            "module_bay_count": 0, "inventory_item_count": 0,
        })

    def add_interface(self, device, interface, whole, by_address):
        number = len(self.interfaces) + 1
        mac = interface.get("mac")
        peer = interface.get("peer")
        ends = []
        if peer:
            ends = [self.nested(
                "dcim/interfaces", 5000 + number, peer[1], description="",
                device=self.nested("dcim/devices", 700, peer[0], description=""),
                cable=self.cable(number), _occupied=True)]
        through_panel = interface.get("through_panel", False)
        panel = [self.nested("dcim/front-ports", 6000, "F12", description="",
                             device=self.nested("dcim/devices", 701, "panel-1", description=""),
                             cable=self.cable(number), _occupied=True)]
        address_of_mac = {"id": number, "url": f"{self.base}/api/dcim/mac-addresses/{number}/",
                          "display": mac, "mac_address": mac, "description": ""}
        record = {
            "id": number,
            "url": f"{self.base}/api/dcim/interfaces/{number}/",
            "display_url": f"{self.base}/dcim/interfaces/{number}/",
            "display": interface["name"],
            "device": device,
            "vdcs": [],
            "module": None,
            "name": interface["name"],
            "label": "",
            "type": {"value": "25gbase-x-sfp28", "label": "SFP28 (25GE)"},
            "enabled": True,
            "parent": None, "bridge": None, "lag": None, "mtu": None,
            "mac_address": mac,
            "speed": None, "duplex": None, "wwn": None,
            "mgmt_only": interface.get("mgmt_only", False),
            "description": "",
            "mode": None, "rf_role": None, "rf_channel": None, "poe_mode": None, "poe_type": None,
            "rf_channel_frequency": None, "rf_channel_width": None, "tx_power": None,
            "untagged_vlan": None, "tagged_vlans": [], "mark_connected": False,
            "cable": self.cable(number) if peer else None,
            "cable_end": "A" if peer else None,
            "wireless_link": None,
            "link_peers": panel if through_panel else ends,
            "link_peers_type": ("dcim.frontport" if through_panel else "dcim.interface")
            if peer else None,
            "wireless_lans": [], "vrf": None, "l2vpn_termination": None,
            "connected_endpoints": ends or None,
            "connected_endpoints_type": "dcim.interface" if peer else None,
            "connected_endpoints_reachable": bool(peer) or None,
            "tags": [], "custom_fields": {},
            "created": "2023-08-31T12:17:34.654624Z",
            "last_updated": "2023-08-31T12:39:39.392554Z",
            "count_ipaddresses": len(interface.get("addresses", [])),
            "count_fhrp_groups": 0,
            "_occupied": bool(peer),
        }
        if not self.old_macs:  # since 4.2
            record["primary_mac_address"] = address_of_mac if mac else None
            record["mac_addresses"] = [address_of_mac] if mac else []
        self.interfaces.append(record)
        for address in interface.get("addresses", []):
            self.add_address(address, record, by_address)

    def cable(self, number):
        return {"id": number, "url": f"{self.base}/api/dcim/cables/{number}/",
                "display": f"#{number}", "label": "", "description": ""}

    def add_address(self, address, interface, by_address):
        number = len(self.addresses) + 1
        by_address[address] = self.ip(number, address)
        self.addresses.append({
            **self.ip(number, address),
            "display_url": f"{self.base}/ipam/ip-addresses/{number}/",
            "vrf": None, "tenant": None,
            "status": {"value": "active", "label": "Active"},
            "role": None,
            "assigned_object_type": "dcim.interface",
            "assigned_object_id": interface["id"],
            "assigned_object": {key: interface[key] for key in
                                ("id", "url", "display", "device", "name", "description", "cable",
                                 "_occupied")},
            "nat_inside": None, "nat_outside": [], "dns_name": "", "comments": "", "tags": [],
            "custom_fields": {}, "created": "2025-08-11T16:49:52.511883Z",
            "last_updated": "2025-08-12T12:50:29.063329Z",
        })


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(status)
        self.status, self.body = status, body


def choices(records, field, wanted):
    known = {tag["slug"] for record in records
             for tag in (record[field] if isinstance(record[field], list) else [record[field]])}
    for each in wanted:
        if each not in known:
            name = {"tags": "tag"}.get(field, field)
            raise Refused(400, {name: [f"Select a valid choice. {each} is not one of the "
                                       "available choices."]})


def filtered(path, everything, query):
    known = {"limit", "offset", "site", "tag", "role", "device_id"}
    if path == "/api/dcim/devices/":
        records = everything.devices
        for field in ("site", "role"):
            wanted = query.get(field, [])
            choices(everything.devices, field, wanted)
            records = [r for r in records if not wanted or r[field]["slug"] in wanted]
        choices(everything.devices, "tags", query.get("tag", []))
        return [r for r in records
                if set(query.get("tag", [])) <= {tag["slug"] for tag in r["tags"]}]
    wanted = {int(each) for each in query.get("device_id", [])}
    if set(query) - known:
        raise Refused(400, {"detail": f"unknown filter {set(query) - known}"})
    if path == "/api/dcim/interfaces/":
        return [r for r in everything.interfaces if not wanted or r["device"]["id"] in wanted]
    if path == "/api/ipam/ip-addresses/":
        return [r for r in everything.addresses
                if not wanted or r["assigned_object"]["device"]["id"] in wanted]
    raise Refused(404, {"detail": "No such resource"})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, kind="application/json", cut=0):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) - cut))
        self.end_headers()
        self.wfile.write(data[:len(data) - cut])

    def do_GET(self):
        data = site()
        mode = data.get("mode", "")
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        base = f"http://{self.headers['Host']}"
        if mode == "html":
            return self.send(200, "<!DOCTYPE html>\n<html><body>Sign in</body></html>", "text/html")
        if mode == "gateway":
            return self.send(502, "<html>Bad Gateway</html>", "text/html")
        said = self.headers.get("Authorization", "")
        token = data["token"]
        good = ("Bearer " if token.startswith("nbt_") else "Token ") + token
        if not said:
            return self.send(403, json.dumps(
                {"detail": "Authentication credentials were not provided."}))
        if said != good:
            return self.send(403, json.dumps({"detail": "Invalid v1 token"}))
        if mode == "forbidden" and "interfaces" in url.path:
            return self.send(403, json.dumps(
                {"detail": "You do not have permission to perform this action."}))
        try:
            records = filtered(url.path, Site(base, data), query)
        except Refused as refused:
            return self.send(refused.status, json.dumps(refused.body))
        limit = min(int(query.get("limit", [PAGE_SIZE])[0]) or MAX_PAGE_SIZE,
                    data.get("page", MAX_PAGE_SIZE))
        offset = int(query.get("offset", ["0"])[0])
        pairs = [(k, v) for k, v in urllib.parse.parse_qsl(url.query) if k not in ("limit", "offset")]

        def link(at):
            there = "http://netbox.internal:8080" if mode == "elsewhere" else base
            return f"{there}{url.path}?" + urllib.parse.urlencode(
                [("limit", limit), ("offset", at)] + pairs)

        answer = {
            "count": len(records),
            "next": link(offset + limit) if offset + limit < len(records) else None,
            "previous": link(max(0, offset - limit)) if offset else None,
            "results": records[offset:offset + limit],
        }
        if mode == "endless":
            answer["next"] = link(offset)
            answer["results"] = records[:limit]
        if mode == "list":
            return self.send(200, json.dumps(records))
        if mode == "shape":
            for each in answer["results"]:
                each["position"] = "ten"
        body = json.dumps(answer)
        self.send(200, body, cut=len(body) // 3 if mode == "cut" else 0)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
