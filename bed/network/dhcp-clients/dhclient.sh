#!/bin/sh
# Called by dhclient with an event. Applies the lease and prints its options.
# shellcheck disable=SC2154 # variables are set by dhclient
classless_routes() {
  while [ $# -gt 4 ]; do
    length=$1 network=0.0.0.0
    shift
    case $(((length + 7) / 8)) in
    0) ;;
    1) network=$1.0.0.0 && shift ;;
    2) network=$1.$2.0.0 && shift 2 ;;
    3) network=$1.$2.$3.0 && shift 3 ;;
    4) network=$1.$2.$3.$4 && shift 4 ;;
    esac
    ip -4 route replace "$network/$length" via "$1.$2.$3.$4" dev "$interface" proto dhcp
    shift 4
  done
}
case $reason in
PREINIT) ip link set "$interface" up ;;
PREINIT6)
  ip link set "$interface" up
  until ip -6 address show dev "$interface" scope link -tentative | grep -q inet6; do sleep 0.1; done
  ;;
BOUND | RENEW | REBIND | REBOOT)
  ip -4 address replace "$new_ip_address/$new_subnet_mask" dev "$interface"
  ip -4 route flush dev "$interface" proto dhcp
  if [ -n "$new_classless_routes" ]; then
    # shellcheck disable=SC2086 # one word for each number of a route
    classless_routes $new_classless_routes
  elif [ -n "$new_routers" ]; then
    ip -4 route replace default via "$new_routers" dev "$interface" proto dhcp
  fi
  echo "lease ip=$new_ip_address dns=$new_domain_name_servers search=$new_domain_search mtu=$new_interface_mtu" \
    "ntp=$new_ntp_servers seconds=$new_dhcp_lease_time"
  ;;
BOUND6 | RENEW6 | REBIND6)
  ip -6 address replace "$new_ip6_address/128" dev "$interface" nodad
  echo "lease ip=$new_ip6_address dns=$new_dhcp6_name_servers search=$new_dhcp6_domain_search seconds=$new_max_life"
  ;;
esac
