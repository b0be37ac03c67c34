package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// The protocol with the process "responder": lines of JSON over a Unix socket. testdata/session.jsonl has one of each.
// `responder` connects and sends commands; the newest connection replaces an older one. An invalid command ends the
// connection, and the log says why.
const (
	protocolVersion = 1
	maxLine         = 1 << 20
	maxEntries      = 16384 // of the table
	maxBatch        = 512   // entries or MAC addresses in one command
	maxOptionSets   = 1024  // of one connection
)

// command is a line from `responder`. Exactly one field is present.
type command struct {
	// Config comes first, and again after each change. The answer is "hello".
	Config *config `json:"config"`
	// Options defines a set of options for later entries. The same id replaces it for later entries only.
	Options *optionSet `json:"options"`
	Put     []entry    `json:"put"`
	Remove  []mac      `json:"remove"`
	// Snapshot is "begin" or "end". At the end, entries that were not put since the beginning are removed.
	// A table is not used before its first "end".
	Snapshot string     `json:"snapshot"`
	Fresh    *freshness `json:"fresh"`
}

// config describes the segment. It is the same for all guests.
type config struct {
	Version   int    `json:"v"`
	Interface string `json:"interface"`
	Server    struct {
		IPv4 netip.Addr `json:"ipv4"` // null: DHCPv4 is not answered
		DUID hexBytes   `json:"duid"`
	} `json:"server"`
	Subnets []subnet     `json:"subnets"`
	Peers   []netip.Addr `json:"peers"` // IPv4 addresses of the pool's other responders
	Times   struct {
		Renew     uint32 `json:"renew"` // in seconds, as all of them
		Rebind    uint32 `json:"rebind"`
		Lease     uint32 `json:"lease"`
		Advertise uint32 `json:"advertise"`
	} `json:"times"`
}

type subnet struct {
	CIDR netip.Prefix `json:"cidr"`
}

// optionSet is the configuration that many guests have in common.
type optionSet struct {
	ID     string       `json:"id"`
	MTU    uint32       `json:"mtu"`
	DNS    []netip.Addr `json:"dns"`
	Search []string     `json:"search"`
	NTP    []netip.Addr `json:"ntp"`
	Routes []route      `json:"routes"`
}

type route struct {
	Destination netip.Prefix `json:"destination"`
	Gateway     netip.Addr   `json:"gateway"`
}

// entry is an interface of a guest.
type entry struct {
	MAC     mac        `json:"mac"`
	IPv4    *entryIPv4 `json:"ipv4"`
	IPv6    *entryIPv6 `json:"ipv6"`
	Options string     `json:"options"`
}

type entryIPv4 struct {
	Address netip.Addr `json:"address"`
	Prefix  int        `json:"prefix"`
	Router  netip.Addr `json:"router"` // absent: the default route is elsewhere
}

type entryIPv6 struct {
	Address netip.Addr `json:"address"`
}

// freshness says for how long the table stays fresh if nothing else comes. The helper counts down by its own clock.
type freshness struct {
	ForMs int64 `json:"forMs"`
}

// report is a line to `responder`. Exactly one field is present.
type report struct {
	Hello  *hello  `json:"hello,omitempty"`
	Seen   *seen   `json:"seen,omitempty"`
	Counts *counts `json:"counts,omitempty"`
}

// hello answers a config. If the interface has an address, the helper answers no guest.
type hello struct {
	Version int  `json:"v"`
	MAC     mac  `json:"mac"`
	Address bool `json:"address"`
}

// seen reports something on the wire, at most once a minute for the same kind, MAC address and address.
type seen struct {
	Kind    string     `json:"kind"` // seenConflict and so on
	MAC     mac        `json:"mac"`
	Address netip.Addr `json:"address"`
}

const (
	seenDeclined   = "declined"   // the guest with this MAC address declined its address
	seenConflict   = "conflict"   // this MAC address uses the address of another guest or of this responder
	seenServer     = "server"     // another DHCP server; the address is its identifier, or of IPv6 its source
	seenRouter     = "router"     // a router advertisement with a lifetime
	seenOverloaded = "overloaded" // the guest with this MAC address, which has this address, sends too much
)

// counts has what happened since the last counts.
type counts struct {
	Exchanges []exchangeCount   `json:"exchanges"`
	Dropped   map[string]uint64 `json:"dropped"` // by reason
}

type exchange struct {
	Protocol string `json:"protocol"`
	Message  string `json:"message"`
	Answer   string `json:"answer"` // "none": not answered
}

type exchangeCount struct {
	exchange
	Count uint64 `json:"count"`
}

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
	for _, is := range []bool{got.Config != nil, got.Options != nil, got.Put != nil, got.Remove != nil, got.Snapshot != "", got.Fresh != nil} {
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
	case c.Fresh != nil && (c.Fresh.ForMs < 0 || c.Fresh.ForMs > 3_600_000):
		return fmt.Errorf("fresh for %d ms, not 0 to 3600000", c.Fresh.ForMs)
	case c.Snapshot != "" && c.Snapshot != "begin" && c.Snapshot != "end":
		return fmt.Errorf("snapshot %q, not begin or end", c.Snapshot)
	case len(c.Put) > maxBatch || len(c.Remove) > maxBatch:
		return fmt.Errorf("%d entries in a line, more than %d", len(c.Put)+len(c.Remove), maxBatch)
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
	return nil
}

func (o *optionSet) validate() error {
	if o.ID == "" || len(o.ID) > 64 {
		return errors.New("options need an id of 1 to 64 bytes")
	}
	if len(o.DNS) > 8 || len(o.NTP) > 4 || len(o.Search) > 8 || len(o.Routes) > 32 || o.MTU > 65535 {
		return fmt.Errorf("options %s are too long", o.ID)
	}
	for _, each := range append(append([]netip.Addr{}, o.DNS...), o.NTP...) {
		if !isHost(each, 0) {
			return fmt.Errorf("options %s: server %s is not an address of a host", o.ID, each)
		}
	}
	for _, each := range o.Search {
		if err := validateDomain(each); err != nil {
			return fmt.Errorf("options %s: %w", o.ID, err)
		}
	}
	for _, each := range o.Routes {
		if !each.Destination.IsValid() || !each.Gateway.IsValid() || each.Destination.Addr().BitLen() != each.Gateway.BitLen() {
			return fmt.Errorf("options %s: route %s by %s is invalid", o.ID, each.Destination, each.Gateway)
		}
	}
	return nil
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

func (e *entry) validate() error {
	switch {
	case e.MAC.isZero() || e.MAC.isGroup():
		return errors.New("not the MAC address of an interface")
	case e.IPv4 == nil && e.IPv6 == nil:
		return errors.New("no address")
	case e.IPv4 != nil && (!isHost(e.IPv4.Address, 4) || e.IPv4.Prefix < 1 || e.IPv4.Prefix > 32):
		return fmt.Errorf("%s/%d is not an IPv4 address of a host with its prefix", e.IPv4.Address, e.IPv4.Prefix)
	case e.IPv4 != nil && e.IPv4.Router.IsValid() && !isHost(e.IPv4.Router, 4):
		return fmt.Errorf("router %s is not an IPv4 address of a host", e.IPv4.Router)
	case e.IPv6 != nil && !isHost(e.IPv6.Address, 6):
		return fmt.Errorf("%s is not an IPv6 address of a host", e.IPv6.Address)
	}
	return nil
}

// isHost returns whether an address can belong to a host. version is 4, 6, or 0 for both.
func isHost(address netip.Addr, version int) bool {
	isVersion := version == 0 || (version == 4) == address.Is4()
	return address.IsValid() && isVersion && !address.Is4In6() && address.Zone() == "" &&
		!address.IsUnspecified() && !address.IsMulticast() && !address.IsLoopback()
}

// mac is a MAC address, written as in 02:00:00:00:00:0a.
type mac [6]byte

func (m mac) String() string {
	return net.HardwareAddr(m[:]).String()
}

func (m mac) isZero() bool  { return m == mac{} }
func (m mac) isGroup() bool { return m[0]&1 == 1 }

func (m mac) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m *mac) UnmarshalText(text []byte) error {
	parsed, err := net.ParseMAC(string(text))
	if err != nil || len(parsed) != len(m) || parsed.String() != string(text) {
		return fmt.Errorf("invalid MAC address %q", text)
	}
	*m = mac(parsed)
	return nil
}

// hexBytes are bytes in hexadecimal form.
type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}
