#!/bin/sh
# Called by udhcpc of a guest.
# shellcheck disable=SC2154 # udhcpc sets the variables
case $1 in
  deconfig) ip link set "$interface" up ;;
  bound | renew)
    echo "hostname=$hostname tftp=$tftp bootfile=$bootfile ntp=$ntpsrv 224=$opt224 254=$opt254" > "/run/options-$interface"
    ip address flush dev "$interface" scope global
    ip address add "$ip/$mask" dev "$interface"
    [ -z "$router" ] || ip route replace default via "${router%% *}" dev "$interface"
    echo "lease $interface $ip server $serverid router $router dns $dns" | tee -a /run/leases
    ;;
esac
