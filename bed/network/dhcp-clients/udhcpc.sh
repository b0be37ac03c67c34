#!/bin/sh
# Called by udhcpc with an event. Applies the lease and prints its options.
# shellcheck disable=SC2154 # variables are set by udhcpc
case $1 in
deconfig) ip -4 address flush dev "$interface" ;;
nak) echo "nak" ;;
bound | renew)
  ip -4 address replace "$ip/$mask" dev "$interface"
  ip -4 route flush dev "$interface" proto dhcp
  # shellcheck disable=SC2086 # one word for each part of a route
  set -- $staticroutes
  while [ $# -ge 2 ]; do
    ip -4 route replace "$1" via "$2" dev "$interface" proto dhcp
    shift 2
  done
  [ -n "$staticroutes" ] || [ -z "$router" ] || ip -4 route replace default via "$router" dev "$interface" proto dhcp
  echo "lease ip=$ip dns=$dns search=$search mtu=$mtu ntp=$ntpsrv seconds=$lease"
  ;;
esac
