package main

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// The protocol with the process "responder": lines of JSON over a Unix socket. testdata/session.jsonl has one of each.
// `responder` connects and sends commands; the newest connection replaces an older one. An invalid command ends the
// connection, and the log says why.
const (
	protocolVersion = 2
	maxLine         = 256 << 10
	maxEntries      = 16384 // of the table, and twice as many before the end of a snapshot
	maxBatch        = 256   // entries, MAC addresses or ids in one command: `responder` sends fewer if they are long
	maxOptionSets   = 1024  // of a connection: those of two tables, while one replaces the other
	maxQuestions    = 256   // at one time; further ones are dropped
	maxExpected     = 16    // MAC addresses in one question
	maxSearchBytes  = 255   // of the search domains in one option
	maxSetOptions   = 1024  // bytes of other options of a set, with their headers
	maxSetOptions6  = 4144  // the same of DHCPv6: 16 of 255 bytes
	maxEntryOptions = 512   // bytes of the options of one entry, with their headers
)

// command is a line from `responder`. Exactly one field is present.
type command struct {
	// Config comes first, and again after each change. The answer is "hello".
	Config *config `json:"config"`
	// Options defines a set of options for later entries. The same id replaces it for later entries only.
	Options *optionSet `json:"options"`
	Put     []entry    `json:"put"`
	Remove  []mac      `json:"remove"`
	// Forget has the ids of sets of options that no later entry uses.
	Forget []string `json:"forget"`
	// Snapshot is "begin" or "end". At the end, entries that were not put since the beginning are removed.
	// A table is not used before its first "end".
	Snapshot string     `json:"snapshot"`
	Fresh    *freshness `json:"fresh"`
	// Probe asks which hosts have an address. The answer is "probed", or nothing if it cannot be asked, or too much is asked already.
	Probe *question `json:"probe"`
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
	Boot    []bootEntry  `json:"boot"`
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
	Search []string     `json:"search"` // those that fit into one option are sent
	NTP    []netip.Addr `json:"ntp"`
	Routes []route      `json:"routes"`
	DHCP4  []option     `json:"dhcp4"` // others of DHCPv4, which those of an entry replace
	DHCP6  []option6    `json:"dhcp6"` // others of DHCPv6

	others4 []dhcpv4.Option // for DHCPv4, encoded, without routes
}

type route struct {
	Destination netip.Prefix `json:"destination"`
	Gateway     netip.Addr   `json:"gateway"`
}

// entry is an interface of a guest.
type entry struct {
	MAC mac `json:"mac"`
	// Owner is the same for all interfaces of a VM. Absent: nothing is known about its other interfaces.
	Owner   string     `json:"owner"`
	IPv4    *entryIPv4 `json:"ipv4"`
	IPv6    *entryIPv6 `json:"ipv6"`
	Options string     `json:"options"`
	// Hostname is a label, FQDN has it and its domain. Both are told to clients that ask for them.
	Hostname string `json:"hostname"`
	FQDN     string `json:"fqdn"`
	// DHCP4 has options of DHCPv4 of this guest alone.
	DHCP4 []option `json:"dhcp4"`
}

// option is an option of DHCPv4 as it is sent.
type option struct {
	Code  uint8    `json:"code"`
	Value hexBytes `json:"value"`
}

// option6 is an option of DHCPv6 as it is sent.
type option6 struct {
	Code  uint16   `json:"code"`
	Value hexBytes `json:"value"`
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

// question is a question to all hosts of the segment.
type question struct {
	ID      uint64     `json:"id"`
	Address netip.Addr `json:"address"`
	// Expect has the MAC addresses that may have the address. Any other one ends the probe.
	Expect []mac `json:"expect"`
	ForMs  int64 `json:"forMs"`
}

// report is a line to `responder`. Exactly one field is present.
type report struct {
	Hello  *hello  `json:"hello,omitempty"`
	Seen   *seen   `json:"seen,omitempty"`
	Counts *counts `json:"counts,omitempty"`
	Probed *probed `json:"probed,omitempty"`
}

// hello answers a config. If the interface has an address, the helper answers no guest.
type hello struct {
	Version int  `json:"v"`
	MAC     mac  `json:"mac"`
	Address bool `json:"address"`
}

// probed answers a question with the hosts that have the address: one that was not expected, or all expected ones.
type probed struct {
	ID   uint64 `json:"id"`
	MACs []mac  `json:"macs"`
}

// seen reports something on the wire, at most once a minute for the same kind, MAC address and address. Of each kind, there
// are few reports about one MAC address and about one address.
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
