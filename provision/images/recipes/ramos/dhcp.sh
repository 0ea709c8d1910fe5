#!/bin/sh
# udhcpc tells what it learned: address, routes, name servers.
case $1 in
  deconfig) ip link set "$interface" up ;;
  bound|renew)
    ip addr replace "$ip/${mask:-24}" ${broadcast:+broadcast "$broadcast"} dev "$interface"
    for other in $(ip -4 -o addr show dev "$interface" | tr -s ' ' | cut -d' ' -f4); do
      [ "${other%/*}" = "$ip" ] || ip addr del "$other" dev "$interface"
    done
    for gateway in $router; do ip route replace default via "$gateway" dev "$interface"; break; done
    : > /etc/resolv.conf
    [ -n "$domain" ] && echo "search $domain" >> /etc/resolv.conf
    for server in $dns; do echo "nameserver $server" >> /etc/resolv.conf; done
    ;;
esac
