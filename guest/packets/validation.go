package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

func parseCommand(line []byte) (*command, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var got command
	if err := decoder.Decode(&got); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errors.New("more than one value in a line")
	}
	present := 0
	for _, is := range []bool{got.Config != nil, got.Options != nil, got.Put != nil, got.Remove != nil, got.Forget != nil, got.Snapshot != "", got.Fresh != nil, got.Probe != nil} {
		if is {
			present++
		}
	}
	if present != 1 {
		return nil, fmt.Errorf("%d commands in a line, not one", present)
	}
	return &got, got.validate()
}

func (c *command) validate() error {
	switch {
	case c.Config != nil:
		return c.Config.validate()
	case c.Options != nil:
		return c.Options.validate()
	case c.Probe != nil:
		return c.Probe.validate()
	case c.Fresh != nil && (c.Fresh.ForMs < 0 || c.Fresh.ForMs > 3_600_000):
		return fmt.Errorf("fresh for %d ms, not 0 to 3600000", c.Fresh.ForMs)
	case c.Snapshot != "" && c.Snapshot != "begin" && c.Snapshot != "end":
		return fmt.Errorf("snapshot %q, not begin or end", c.Snapshot)
	case len(c.Put)+len(c.Remove)+len(c.Forget) > maxBatch:
		return fmt.Errorf("%d entries in a line, more than %d", len(c.Put)+len(c.Remove)+len(c.Forget), maxBatch)
	}
	for _, each := range c.Put {
		if err := each.validate(); err != nil {
			return fmt.Errorf("entry %s: %w", each.MAC, err)
		}
	}
	return nil
}

func (c *config) validate() error {
	times := c.Times
	switch {
	case c.Version != protocolVersion:
		return fmt.Errorf("protocol version %d, not %d: both containers must have one image", c.Version, protocolVersion)
	case c.Interface == "":
		return errors.New("no interface")
	case c.Server.IPv4.IsValid() && !isHost(c.Server.IPv4, 4):
		return fmt.Errorf("server address %s is not an IPv4 address of a host", c.Server.IPv4)
	case len(c.Server.DUID) != 18 || !bytes.HasPrefix(c.Server.DUID, []byte{0, 4}):
		return errors.New("server DUID is not a UUID (type 4)")
	case times.Renew == 0 || times.Renew >= times.Rebind || times.Rebind >= times.Lease || times.Advertise == 0:
		return errors.New("times are not 0 < renew < rebind < lease and 0 < advertise")
	case len(c.Subnets) > 64 || len(c.Peers) > 16:
		return errors.New("more than 64 subnets or 16 peers")
	}
	for _, each := range c.Subnets {
		if !each.CIDR.IsValid() {
			return errors.New("a subnet has no cidr")
		}
	}
	for _, each := range c.Peers {
		if !isHost(each, 4) {
			return fmt.Errorf("peer %s is not an IPv4 address of a host", each)
		}
	}
	return validateBoot(c.Boot)
}

func (o *optionSet) validate() error {
	if o.ID == "" || len(o.ID) > 64 {
		return errors.New("options need an id of 1 to 64 bytes")
	}
	if len(o.DNS) > 8 || len(o.NTP) > 4 || len(o.Search) > 8 || len(o.Routes) > 32 || o.MTU > 65535 {
		return fmt.Errorf("options %s are too long", o.ID)
	}
	isUnusable := func(each netip.Addr) bool { return !each.IsValid() || each.Zone() != "" || each.Is4In6() }
	o.DNS, o.NTP = slices.DeleteFunc(o.DNS, isUnusable), slices.DeleteFunc(o.NTP, isUnusable)
	encoded := 0
	for index, each := range o.Search {
		if err := validateDomain(each); err != nil {
			return fmt.Errorf("options %s: %w", o.ID, err)
		}
		if encoded += len(each) + 2; encoded > maxSearchBytes {
			o.Search = o.Search[:index]
			break
		}
	}
	for _, each := range o.Routes {
		if !each.Destination.IsValid() || !each.Gateway.IsValid() || each.Destination.Addr().BitLen() != each.Gateway.BitLen() {
			return fmt.Errorf("options %s: route %s by %s is invalid", o.ID, each.Destination, each.Gateway)
		}
	}
	if err := validateOptions6(o.DHCP6); err != nil {
		return err
	}
	return validateOptions(o.DHCP4, isPoolOption, maxSetOptions)
}

// validateDomain checks what the encoders of the options need: labels of at most 63 bytes, 253 in all.
func validateDomain(name string) error {
	if name == "" || len(name) > 253 {
		return errors.New("search domain is empty or longer than 253 bytes")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return fmt.Errorf("search domain %q has a label that is empty or longer than 63 bytes", name)
		}
	}
	return nil
}

func (q *question) validate() error {
	switch {
	case !isHost(q.Address, 4) && !isHost(q.Address, 6):
		return fmt.Errorf("probe of %s, which is no address of a host", q.Address)
	case len(q.Expect) > maxExpected:
		return fmt.Errorf("probe expects %d MAC addresses, more than %d", len(q.Expect), maxExpected)
	case q.ForMs < 100 || q.ForMs > 10_000:
		return fmt.Errorf("probe for %d ms, not 100 to 10000", q.ForMs)
	}
	return nil
}

func (e *entry) validate() error {
	switch {
	case e.MAC.isZero() || e.MAC.isGroup():
		return errors.New("not the MAC address of an interface")
	case len(e.Owner) > 64:
		return errors.New("owner is longer than 64 bytes")
	case e.IPv4 == nil && e.IPv6 == nil:
		return errors.New("no address")
	case e.IPv4 != nil && (!isHost(e.IPv4.Address, 4) || e.IPv4.Prefix < 1 || e.IPv4.Prefix > 32):
		return fmt.Errorf("%s/%d is not an IPv4 address of a host with its prefix", e.IPv4.Address, e.IPv4.Prefix)
	case e.IPv4 != nil && e.IPv4.Router.IsValid() && !isHost(e.IPv4.Router, 4):
		return fmt.Errorf("router %s is not an IPv4 address of a host", e.IPv4.Router)
	case e.IPv6 != nil && !isHost(e.IPv6.Address, 6):
		return fmt.Errorf("%s is not an IPv6 address of a host", e.IPv6.Address)
	case e.Hostname != "" && (validateDomain(e.Hostname) != nil || strings.Contains(e.Hostname, ".")):
		return fmt.Errorf("hostname %q is not one label", e.Hostname)
	case e.FQDN != "" && validateDomain(e.FQDN) != nil:
		return fmt.Errorf("fqdn: %w", validateDomain(e.FQDN))
	}
	return validateOptions(e.DHCP4, isEntryOption, maxEntryOptions)
}

// validateOptions checks options that people write: none may replace what we compute.
func validateOptions(options []option, isAllowed func(code uint8) bool, most int) error {
	size, seen := 0, map[uint8]bool{}
	for _, each := range options {
		size += sizeOfOption(each.Value)
		switch {
		case !isAllowed(each.Code) || seen[each.Code]:
			return fmt.Errorf("option %d is not for one guest, is computed, or is there twice", each.Code)
		case len(each.Value) == 0 || len(each.Value) > 255 || size > most:
			return fmt.Errorf("option %d has %d bytes, or all have more than %d", each.Code, len(each.Value), most)
		}
		seen[each.Code] = true
	}
	return nil
}

// isPoolOption returns whether nothing else decides an option. 1 and 255 have other meanings in a message.
func isPoolOption(code uint8) bool {
	return code > 1 && code < 255 && !(code >= 50 && code <= 59) && !slices.Contains([]uint8{3, 6, 12, 15, 26, 42, 60, 61, 81, 82, 97, 119, 121, 249}, code)
}

// validateOptions6 checks the same of DHCPv6. Its options up to 20 are about the exchange itself, but for that of vendors.
func validateOptions6(options []option6) error {
	size, seen := 0, map[uint16]bool{}
	for _, each := range options {
		size += 4 + len(each.Value)
		isComputed := each.Code <= 20 && each.Code != 17 || slices.Contains([]uint16{23, 24, 25, 26, 31, 32, 39, 56, 59, 60}, each.Code)
		if isComputed || seen[each.Code] || len(each.Value) == 0 || size > maxSetOptions6 {
			return fmt.Errorf("option %d of DHCPv6 is computed, there twice or empty, or all have more than %d bytes", each.Code, maxSetOptions6)
		}
		seen[each.Code] = true
	}
	return nil
}

// isEntryOption returns whether a guest may have its own: NTP servers, TFTP server, boot file, and options for private use,
// without that of Microsoft for routes.
func isEntryOption(code uint8) bool {
	return code == 42 || code == 66 || code == 67 || code >= 224 && code <= 254 && code != optionMicrosoftRoutes.Code()
}

// isHost returns whether an address of a version (4 or 6) can belong to a host.
func isHost(address netip.Addr, version int) bool {
	isVersion := (version == 4) == address.Is4()
	return address.IsValid() && isVersion && !address.Is4In6() && address.Zone() == "" &&
		!address.IsUnspecified() && !address.IsMulticast() && !address.IsLoopback() && address != broadcastIPv4
}
