#!/bin/sh
# Called by dhcpcd with an event, after it has applied the lease. Prints the options.
# shellcheck disable=SC2154 # variables are set by dhcpcd
case $reason in
BOUND | RENEW | REBIND | REBOOT)
  echo "lease ip=$new_ip_address dns=$new_domain_name_servers search=$new_domain_search mtu=$new_interface_mtu" \
    "ntp=$new_ntp_servers seconds=$new_dhcp_lease_time"
  ;;
BOUND6 | RENEW6 | REBIND6)
  echo "lease ip=$new_dhcp6_ia_na1_ia_addr1 dns=$new_dhcp6_name_servers search=$new_dhcp6_domain_search" \
    "seconds=$new_dhcp6_ia_na1_ia_addr1_vltime"
  ;;
esac
