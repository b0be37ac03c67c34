package main

import (
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

	"github.com/insomniacslk/dhcp/dhcpv6"
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
