package main

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"golang.org/x/sys/unix"
)

// The cases of testdata/conformance.jsonl run against this program in memory, and with CONFORMANCE_INTERFACE against the
// server on a segment: `make conformance-dhcp`. That server has the configuration of testdata/session.jsonl.

// conformanceCase is a message, and what the RFC or a deliberate difference says about the answer.
type conformanceCase struct {
	Protocol   string // dhcp4, dhcp6 or ndp
	Name       string
	RFC        string
	Difference string // why we differ from the RFC or from other servers
	Send       struct {
		Kind      string
		To        string // "server": by unicast
		Broadcast bool
		CIAddr    string
		GIAddr    string
		Server    string   // of DHCPv6: "own", "other" or none
		IA        []string // addresses of DHCPv6
		PRL       []int    // of DHCPv4; absent: those of most clients
		ORO       []int
		Options   map[string]string
		sentSolicitation
	}
	Want struct {
		Kind    string // "none": no answer
		YIAddr  string
		CIAddr  string
		SIAddr  string
		File    string // "none": no file
		To      string
		Address string // of DHCPv6
		Status  *uint16
		Options map[string]*string // null: absent
		wantedAdvertisement
	}
}

func conformanceCases(t *testing.T) []conformanceCase {
	t.Helper()
	text, err := os.ReadFile("testdata/conformance.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []conformanceCase
	for line := range strings.Lines(string(text)) {
		var one conformanceCase
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// peer is the server that is tested.
type peer struct {
	ask       func(frame []byte, wantsAnswer bool) []byte // nil: no answer
	mac       mac
	duid      []byte
	linkLocal netip.Addr
}

func TestConformance(t *testing.T) {
	server := inMemory(t)
	if name := os.Getenv("CONFORMANCE_INTERFACE"); name != "" {
		server = onSegment(t, name)
	}
	for _, each := range conformanceCases(t) {
		switch each.Protocol {
		case "dhcp4":
			t.Run("DHCPv4/"+each.Name, func(t *testing.T) { each.check4(t, server) })
		case "dhcp6":
			t.Run("DHCPv6/"+each.Name, func(t *testing.T) { each.check6(t, server) })
		case "ndp":
			t.Run("NDP/"+each.Name, func(t *testing.T) { each.checkNDP(t, server) })
		default:
			t.Errorf("%s: protocol %q", each.Name, each.Protocol)
		}
	}
}

func inMemory(t *testing.T) *peer {
	w := newWorld(t)
	return &peer{mac: ownMAC, duid: ownDUID, linkLocal: linkLocal(ownMAC), ask: func(frame []byte, _ bool) []byte {
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		w.wait(pauseBefore(frame))
		w.take()
		w.receive(w.now, frame, checksumsUnknown)
		if sent := w.take(); len(sent) > 0 {
			return sent[0]
		}
		return nil
	}}
}

// onSegment asks for the first addresses, and learns who the server is.
func onSegment(t *testing.T, name string) *peer {
	t.Helper()
	device, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	link, err := listenTo(device, unix.ETH_P_ALL, frameFilter())
	if err != nil {
		t.Fatal(err)
	}
	frames := make(chan []byte, 256)
	go link.receive(func(frame []byte, _ checksums) { frames <- slices.Clone(frame) })
	server := &peer{mac: broadcastMAC, linkLocal: allDHCP6Servers}
	server.ask = func(frame []byte, wantsAnswer bool) []byte {
		time.Sleep(pauseBefore(frame))
		for len(frames) > 0 {
			<-frames
		}
		if link.send(frame) != nil {
			t.Fatal("not sent")
		}
		wait := 700 * time.Millisecond
		if wantsAnswer {
			wait = 2 * time.Second
		}
		for deadline := time.After(wait); ; {
			select {
			case got := <-frames:
				if mac(got[6:12]) != mac(frame[6:12]) && isAnswer(got, frame) {
					server.mac = mac(got[6:12])
					return got
				}
			case <-deadline:
				return nil
			}
		}
	}
	var first conformanceCase
	first.Send.Kind = "discover"
	until(t, "an answer to the first DISCOVER", func() bool { return server.ask(first.frame4(server), true) != nil })
	first.Send.Kind, first.Send.Options = "request", map[string]string{"50": "0a01000a", "54": "0a010002"}
	server.ask(first.frame4(server), true)
	first.Send.Kind, first.Send.Options, first.Send.IA = "solicit", nil, []string{}
	var advertise []byte
	until(t, "an answer to the first SOLICIT", func() bool {
		advertise = server.ask(first.frame6(server), true)
		return advertise != nil
	})
	server.linkLocal = netip.AddrFrom16([16]byte(advertise[etherLength+8 : etherLength+24]))
	message, err := dhcpv6.MessageFromBytes(advertise[etherLength+48:])
	if err != nil {
		t.Fatal(err)
	}
	server.duid = message.Options.ServerID().ToBytes()
	first.Send.Kind, first.Send.Server, first.Send.IA = "request", "own", []string{"fd00:1::a"}
	server.ask(first.frame6(server), true)
	return server
}

// pauseBefore is long enough for the limits of a guest.
func pauseBefore(frame []byte) time.Duration {
	if isSolicitation(frame) {
		return advertisementInterval + 100*time.Millisecond
	}
	return 250 * time.Millisecond
}

func isAnswer(frame, to []byte) bool {
	if got, ok := parseIPv4(frame[etherLength:]); ok {
		return got.to.Port() == dhcp4Client
	}
	b := frame[etherLength:]
	if isSolicitation(to) {
		return isAdvertisement(frame, to)
	}
	return len(b) > 48 && b[0]>>4 == 6 && b[6] == protocolUDP && int(b[42])<<8|int(b[43]) == dhcp6Client
}

func (c *conformanceCase) frame4(server *peer) []byte {
	kinds := map[string]dhcpv4.MessageType{
		"discover": dhcpv4.MessageTypeDiscover, "request": dhcpv4.MessageTypeRequest, "inform": dhcpv4.MessageTypeInform,
		"release": dhcpv4.MessageTypeRelease, "decline": dhcpv4.MessageTypeDecline, "offer": dhcpv4.MessageTypeOffer,
	}
	change := []dhcpv4.Modifier{dhcpv4.WithBroadcast(c.Send.Broadcast)}
	if c.Send.CIAddr != "" {
		change = append(change, dhcpv4.WithClientIP(net.ParseIP(c.Send.CIAddr)))
	}
	if c.Send.GIAddr != "" {
		change = append(change, dhcpv4.WithGatewayIP(net.ParseIP(c.Send.GIAddr)))
	}
	if c.Send.PRL != nil {
		codes := make(dhcpv4.OptionCodeList, len(c.Send.PRL))
		for index, code := range c.Send.PRL {
			codes[index] = dhcpv4.GenericOptionCode(code)
		}
		change = append(change, dhcpv4.WithOption(dhcpv4.OptParameterRequestList(codes...)))
		if len(codes) == 0 {
			change = append(change, dhcpv4.WithoutOption(dhcpv4.OptionParameterRequestList))
		}
	}
	for code, value := range c.Send.Options {
		change = append(change, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(number(code)), fromHex(value))))
	}
	to := broadcastIPv4
	if c.Send.To == "server" {
		to = ownIPv4
	}
	frame := fromClientTo(to, guestMAC, kinds[c.Send.Kind], change...)
	if c.Send.To == "server" {
		copy(frame, server.mac[:])
	}
	return frame
}

func (c *conformanceCase) check4(t *testing.T, server *peer) {
	frame := server.ask(c.frame4(server), c.Want.Kind != "none")
	if frame == nil {
		if c.Want.Kind != "none" {
			t.Fatalf("RFC %s: no answer, not %s", c.RFC, c.Want.Kind)
		}
		return
	}
	got, _ := parseIPv4(frame[etherLength:])
	message, err := dhcpv4.FromBytes(got.payload)
	if err != nil {
		t.Fatal(err)
	}
	kind := strings.ToLower(message.MessageType().String())
	for _, row := range []struct{ field, got, want string }{
		{"kind", kind, c.Want.Kind}, {"yiaddr", message.YourIPAddr.String(), c.Want.YIAddr},
		{"ciaddr", message.ClientIPAddr.String(), c.Want.CIAddr}, {"siaddr", message.ServerIPAddr.String(), c.Want.SIAddr},
		{"file", cmp.Or(message.BootFileName, "none"), c.Want.File}, {"destination", got.to.Addr().String(), c.Want.To},
	} {
		c.checkField(t, row.field, row.got, row.want)
	}
	c.checkOptions(t, func(code int) ([]byte, bool) {
		option := dhcpv4.GenericOptionCode(code)
		return message.Options.Get(option), message.Options.Has(option)
	})
}

func (c *conformanceCase) checkField(t *testing.T, field, got, want string) {
	if want != "" && got != want {
		t.Errorf("RFC %s: %s is %s, not %s", c.RFC, field, got, want)
	}
}

func (c *conformanceCase) checkOptions(t *testing.T, find func(code int) ([]byte, bool)) {
	for code, want := range c.Want.Options {
		value, has := find(number(code))
		if has != (want != nil) || has && hex.EncodeToString(value) != *want {
			t.Errorf("RFC %s: option %s is %x (%t), not %s", c.RFC, code, value, has, text(want))
		}
	}
}

func (c *conformanceCase) frame6(server *peer) []byte {
	kinds := map[string]dhcpv6.MessageType{}
	for kind, name := range messageNames6 {
		kinds[name] = kind
	}
	message := &dhcpv6.Message{MessageType: kinds[c.Send.Kind], TransactionID: dhcpv6.TransactionID{1, 2, 3}}
	message.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: guestMAC[:]}))
	message.AddOption(dhcpv6.OptElapsedTime(0))
	switch c.Send.Server {
	case "own":
		message.AddOption(serverID(server.duid))
	case "other":
		message.AddOption(serverID(fromHex("0004 ff0102030405060708090a0b0c0d0e0f")))
	}
	if c.Send.IA != nil {
		message.AddOption(iaOf(1, c.Send.IA...))
	}
	if c.Send.ORO != nil {
		var codes dhcpv6.OptionCodes
		for _, code := range c.Send.ORO {
			codes = append(codes, dhcpv6.OptionCode(code))
		}
		message.AddOption(dhcpv6.OptRequestedOption(codes...))
	}
	for code, value := range c.Send.Options {
		message.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionCode(number(code)), OptionData: fromHex(value)})
	}
	to, target := groupMAC(allDHCP6Servers), allDHCP6Servers
	if c.Send.To == "server" {
		to, target = server.mac, server.linkLocal
	}
	return ethernet(to, guestMAC, etherIPv6, ipv6(datagram{
		from: netip.AddrPortFrom(linkLocal(guestMAC), dhcp6Client), to: netip.AddrPortFrom(target, dhcp6Server), payload: message.ToBytes(),
	}))
}

func (c *conformanceCase) check6(t *testing.T, server *peer) {
	frame := server.ask(c.frame6(server), c.Want.Kind != "none")
	if frame == nil {
		if c.Want.Kind != "none" {
			t.Fatalf("RFC %s: no answer, not %s", c.RFC, c.Want.Kind)
		}
		return
	}
	message, err := dhcpv6.MessageFromBytes(frame[etherLength+48:])
	if err != nil {
		t.Fatal(err)
	}
	if kind := strings.ToLower(message.MessageType.String()); kind != c.Want.Kind {
		t.Fatalf("RFC %s: %s, not %s", c.RFC, kind, c.Want.Kind)
	}
	if want := c.Want.Address; want != "" {
		ia := message.Options.OneIANA()
		if ia == nil || ia.Options.OneAddress() == nil || !ia.Options.OneAddress().IPv6Addr.Equal(net.ParseIP(want)) {
			t.Errorf("RFC %s: %s, not the address %s", c.RFC, message, want)
		}
	}
	if want := c.Want.Status; want != nil {
		status := message.Options.Status()
		if status == nil && *want != 0 || status != nil && uint16(status.StatusCode) != *want {
			t.Errorf("RFC %s: status %v, not %d", c.RFC, status, *want)
		}
	}
	c.checkOptions(t, func(code int) ([]byte, bool) {
		option := message.GetOneOption(dhcpv6.OptionCode(code))
		if option == nil {
			return nil, false
		}
		return option.ToBytes(), true
	})
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

func text(value *string) string {
	if value == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", *value)
}
