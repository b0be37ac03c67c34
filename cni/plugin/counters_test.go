package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCountersOfAllTablesAreWritten(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "observe")
	rules.Subject = []byte(`{"pool":"blue"}`)
	must(t, n.apply(rules))
	if counted, err := readCounters(); err != nil || len(counted) != 0 {
		t.Fatalf("before a packet: %v, %v", counted, err)
	}
	for range 2 {
		if !n.passes(arp(1, guestMAC, "0a0100c8", "0a0100fe")) {
			t.Fatal("a guard that observes drops")
		}
	}
	counted, err := readCounters()
	must(t, err)
	if got := counted[tableName(n.asked)]["arp_sender"]; got != 2 || len(counted) != 1 {
		t.Errorf("2 packets of another address: %v", counted)
	}
	must(t, n.ports.writeCounters(counted))
	text, err := os.ReadFile(filepath.Join(n.ports.folder, countersFile))
	must(t, err)
	if want := `"arp_sender":2`; !strings.Contains(string(text), want) {
		t.Errorf("the file has %s", text)
	}
	noted, err := os.ReadFile(filepath.Join(n.ports.folder, tableName(n.asked)))
	must(t, err)
	if want := `"mode":"Observe","subject":{"pool":"blue"}`; !strings.Contains(string(noted), want) {
		t.Errorf("the note has %s", noted)
	}
	must(t, n.ports.collect("")) // the file of counters is no note
}

func TestAPortWithoutItsRulesIsNotedUntilItIsGone(t *testing.T) {
	n := newNode(t, "macvlan")
	rules := golden(t, "observe")
	guardPort(n.asked, n.ports, rules)
	noted, err := n.ports.read(tableName(n.asked))
	must(t, err)
	if !strings.Contains(noted.Failure, "of kind macvlan") {
		t.Errorf("the note has %+v", noted)
	}
	must(t, n.ports.check(n.asked)) // it is reported in another way
	must(t, n.ports.collect(""))
	if _, err := n.ports.read(tableName(n.asked)); err != nil {
		t.Errorf("GC removed the note of a pod that exists: %v", err)
	}
	gone := n.asked
	gone.Env = map[string]string{"CNI_CONTAINERID": "c2", "CNI_IFNAME": "net1", "CNI_NETNS": filepath.Join(t.TempDir(), "gone")}
	guardPort(gone, n.ports, rules)
	inContainer := guards{folder: n.ports.folder, isConfined: true}
	must(t, inContainer.collect(""))
	if _, err := n.ports.read(tableName(gone)); err != nil {
		t.Errorf("a container that does not see pods removed a note: %v", err)
	}
	must(t, n.ports.collect(""))
	if _, err := n.ports.read(tableName(gone)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("GC left the note of a pod that is gone: %v", err)
	}
	must(t, n.ports.collect(tableName(n.asked)))
	if _, err := n.ports.read(tableName(n.asked)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("DEL left the note: %v", err)
	}
}
