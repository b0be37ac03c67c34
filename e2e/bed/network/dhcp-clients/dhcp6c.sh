#!/bin/sh
# Called by dhcp6c with an event, after it has applied the address. Prints the options.
# shellcheck disable=SC2154 # variables are set by dhcp6c
case $REASON in
INFOREQ | REQUEST | RENEW | REBIND) echo "lease dns=$new_domain_name_servers search=$new_domain_name" ;;
esac
