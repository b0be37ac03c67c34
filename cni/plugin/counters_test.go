package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// flush does what `nft flush ruleset` does.
func flush(t *testing.T) {
	t.Helper()
	all := tableMessage(unix.NFT_MSG_DELTABLE, 0, nil)
	all.body[0] = unix.NFPROTO_UNSPEC
	must(t, transact(0, []message{all}))
}

func TestThatAnotherProgramHasRemovedTheRulesIsNotedUntilThePortIsGone(t *testing.T) {
	n := newNode(t, "veth")
	name := tableName(n.asked)
	rules := golden(t, "enforce")
	rules.Subject = []byte(`{"pool":"blue"}`)
	must(t, n.apply(rules))
	expected, err := n.ports.read(name)
	must(t, err)
	countEvery = time.Millisecond
	t.Cleanup(func() { countEvery = 10 * time.Second })
	here, err := os.Open("/proc/thread-self/ns/net")
	must(t, err)
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ended <- errors.Join(unix.Setns(int(here.Fd()), unix.CLONE_NEWNET), countDrops(n.ports.folder))
	}()
	flush(t)
	noted := expected
	for deadline := time.Now().Add(10 * time.Second); noted.Failure == "" && time.Now().Before(deadline); {
		noted, err = n.ports.read(name)
		must(t, err)
	}
	expected.Failure = rulesLost
	if string(encode(noted)) != string(encode(expected)) {
		t.Errorf("the note has %+v", noted)
	}
	away := n.ports.folder + "-away"
	must(t, os.Rename(n.ports.folder, away)) // so that the counting ends
	<-ended
	n.ports.folder = away
	if err := n.ports.check(n.asked); err == nil || !strings.Contains(err.Error(), "has 0 of the") {
		t.Errorf("CHECK of a port that has lost its rules: %v", err)
	}
	must(t, n.ports.collect(name))
	if _, err := n.ports.read(name); err != nil {
		t.Errorf("a DEL that comes before that of the interface removed the note: %v", err)
	}
	run(t, "ip link del vg")
	must(t, n.ports.collect(""))
	if _, err := n.ports.read(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("GC left the note of a port that is gone: %v", err)
	}
}

func TestAPortHasNotLostTheRulesThatItsADDHasNotAppliedYet(t *testing.T) {
	n := newNode(t, "veth")
	name := tableName(n.asked)
	rules := golden(t, "enforce")
	must(t, n.apply(rules))
	flush(t)
	var missing map[string]note
	search := func(count int) {
		t.Helper()
		var err error
		missing, err = n.ports.noteLost(missing)
		must(t, err)
		if noted, err := n.ports.read(name); err != nil || noted.Failure != "" || len(missing) != count {
			t.Errorf("%d ports have no table, and the note has %+v, %v", len(missing), noted, err)
		}
	}
	search(1)
	must(t, n.ports.write(n.asked, rules, note{Index: missing[name].Index, Rules: 1})) // of a later ADD
	search(1)
	must(t, n.apply(rules))
	search(0)
	flush(t)
	must(t, n.ports.write(n.asked, rules, note{Index: 9999})) // of an interface that is gone
	search(0)
}
