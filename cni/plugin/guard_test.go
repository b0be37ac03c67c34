package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestEnforceDropsWhatIsNotOfTheClaim(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "enforce")))
	n.expectOnlyTheClaim()
}

// The first rules pass most frames, so without them the others must decide the same.
func TestTheFirstRulesPassNothingThatOthersDrop(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "enforce")
	first := &rules.Chains[0]
	for first.Rules[0].Verdict == "accept" {
		first.Rules = first.Rules[1:]
	}
	if removed := len(golden(t, "enforce").Chains[0].Rules) - len(first.Rules); removed != 4 {
		t.Fatalf("there are %d first rules, not those of TCP and UDP in IPv4 and IPv6", removed)
	}
	must(t, n.apply(rules))
	n.expectOnlyTheClaim()
}

func (n *node) expectOnlyTheClaim() {
	n.t.Helper()
	for _, each := range frames {
		before := uint64(0)
		if each.counter != "" {
			before = n.counted(each.counter)
		}
		if passed := n.passes(each.frame); passed != (each.counter == "") {
			n.t.Errorf("%s: passed is %v", each.name, passed)
		}
		if each.counter != "" && n.counted(each.counter) != before+1 {
			n.t.Errorf("%s is not counted as %s", each.name, each.counter)
		}
	}
}

func TestObservePassesAndCounts(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "observe")))
	if !n.passes(arp(2, guestMAC, "0a010009", guest4)) || n.counted("arp_sender") != 1 {
		t.Error("ARP of another address does not pass, or is not counted")
	}
}

func TestHoldEndsWithTheGuestsReverseARP(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "observed-hold")
	must(t, n.apply(rules))
	n.expectHeld(arp(2, guestMAC, guest4, guest4))
	n.expectHeld(ethernet(neighbourMAC, "0806", "0001")) // of the launcher's kernel, whose interface has another MAC address
	n.expectHeld(reverseARP(neighbourMAC, neighbourMAC))
	n.expectHeld(arp(2, guestMAC, guest4, guest4))
	if !n.passes(reverseARP(guestMAC, guestMAC)) || !n.passes(arp(2, guestMAC, guest4, guest4)) {
		t.Error("the guest is held after its own reverse ARP")
	}
	if !n.passes(reverseARP(guestMAC, guestMAC)) || !n.passes(ethernet(neighbourMAC, "0806", "0001")) {
		t.Error("frames are held after the guest's own reverse ARP, although the guard only observes")
	}
	for i := range rules.Sets {
		if rules.Sets[i].TimeoutSeconds > 0 {
			rules.Sets[i].TimeoutSeconds = 1
		}
	}
	must(t, n.apply(rules))
	n.expectHeld(arp(2, guestMAC, guest4, guest4))
	for deadline := time.Now().Add(10 * time.Second); ; {
		before := n.counted("held")
		n.write(arp(2, guestMAC, guest4, guest4))
		if n.counted("held") == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the hold does not end by itself")
		}
	}
}

func (n *node) write(digits string) {
	n.t.Helper()
	frame, err := hex.DecodeString(digits)
	must(n.t, err)
	_, err = unix.Write(n.send, frame)
	must(n.t, err)
}

// expectHeld waits for the counter, because nothing passes that could be waited for.
func (n *node) expectHeld(digits string) {
	n.t.Helper()
	before := n.counted("held")
	n.write(digits)
	for deadline := time.Now().Add(5 * time.Second); n.counted("held") == before; {
		if time.Now().After(deadline) {
			n.t.Fatal("the frame is not held")
		}
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.ports.check(n.asked))
	rules := golden(t, "enforce")
	must(t, n.apply(rules))
	must(t, n.ports.check(n.asked))
	must(t, transact(0, deletion(tableName(n.asked))))
	missing := "has 0 of the " + strconv.Itoa(rules.count()) + " rules of interface net1"
	if err := n.ports.check(n.asked); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("without rules: %v", err)
	}
}

func TestInvalidRulesApplyNothing(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "enforce")
	last := &rules.Chains[0].Rules[0]
	last.Verdict = "goto nowhere"
	if err := n.apply(rules); err == nil {
		t.Error("invalid rules are no error")
	}
	if n.tables() != 0 {
		t.Error("half of the rules were applied")
	}
	if _, err := n.ports.read(tableName(n.asked)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a note, which a kernel without nftables would keep: %v", err)
	}
	if err := explain(syscall.ENOENT); !strings.Contains(err.Error(), "or the interface is gone") {
		t.Error(err)
	}
	if err := explain(syscall.EOPNOTSUPP); !strings.Contains(err.Error(), "CONFIG_NF_TABLES_NETDEV") || !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
}

func TestMoreAddressesThanAMessageHoldsApplyNothing(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "enforce")
	for i := range rules.Sets {
		if rules.Sets[i].Type == "ipv4_addr" {
			for j := range 5000 {
				rules.Sets[i].Elements = append(rules.Sets[i].Elements, fmt.Sprintf("0a02%04x", j))
			}
		}
	}
	if err := n.apply(rules); err == nil || !strings.Contains(err.Error(), "too many addresses") {
		t.Errorf("5000 addresses: %v", err)
	}
	if n.tables() != 0 {
		t.Error("some of the rules were applied")
	}
}

func TestTheAgentLearnsWhichRulesThePluginCanApply(t *testing.T) {
	asked := newRequest([]string{"CNI_COMMAND=ADD", "HOME=/root"})
	if text, expected := string(encode(asked)), `{"env":{"CNI_COMMAND":"ADD"},"config":"","guard":1}`; strings.TrimSpace(text) != expected {
		t.Errorf("the request is %s", text)
	}
}
