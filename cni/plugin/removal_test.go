package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestNothingIsLeft(t *testing.T) {
	n := newNode(t, "veth")
	for range 2 {
		must(t, n.apply(golden(t, "enforce")))
	}
	must(t, n.ports.collect(""))
	if n.tables() != 1 {
		t.Fatal("GC removed the rules of an interface that exists")
	}
	run(t, "ip link del vg")
	must(t, n.ports.collect(""))
	if n.tables() != 0 {
		t.Error("GC left the rules of an interface that is gone")
	}
	if err := n.apply(golden(t, "enforce")); err == nil {
		t.Error("rules were applied to an interface that is gone")
	}
	must(t, n.ports.collect(tableName(n.asked)))
	files, err := os.ReadDir(n.ports.folder)
	if err != nil || len(files) != 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
}

func TestDELRemovesTheRulesOfInterfacesThatAreGone(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "enforce")))
	must(t, n.ports.collect(tableName(n.asked)))
	if n.tables() != 1 {
		t.Fatal("a DEL that comes before that of the interface removed the guard of an interface that exists")
	}
	run(t, "ip link del vg")
	must(t, n.ports.collect("another"))
	if n.tables() != 0 {
		t.Error("the next DEL left rules of an interface that is gone")
	}
	must(t, n.ports.collect(tableName(n.asked)))
}

func TestAnInterfaceWithoutAGuardHasNoRulesOfAnEarlierOne(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.ports.replace(tableName(n.asked)))
	must(t, n.apply(golden(t, "enforce")))
	must(t, n.ports.replace(tableName(n.asked)))
	if n.tables() != 0 {
		t.Error("rules are left")
	}
}

func TestTheNoteOfALaterADDIsNotCollected(t *testing.T) {
	n := newNode(t, "veth")
	name := tableName(n.asked)
	must(t, n.apply(golden(t, "enforce")))
	must(t, n.ports.write(n.asked, golden(t, "enforce"), note{Index: 9999}))
	noted, err := n.ports.read(name)
	must(t, err)
	must(t, n.apply(golden(t, "enforce")))
	must(t, n.ports.remove(map[string]note{name: noted}))
	if _, err := n.ports.read(name); err != nil || n.tables() != 1 {
		t.Errorf("the rules of a later ADD were removed: %v", err)
	}
}

func TestAFailureKeepsWhereTheRulesOfAnEarlierADDAre(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "observe")
	must(t, n.apply(rules))
	rules.Chains[0].Rules[0].Verdict = "goto nowhere"
	guardPort(n.asked, n.ports, rules)
	noted, err := n.ports.read(tableName(n.asked))
	must(t, err)
	if noted.Failure == "" || noted.Index == 0 {
		t.Fatalf("the note has %+v", noted)
	}
	run(t, "ip link del vg")
	must(t, guards{folder: n.ports.folder, isConfined: true}.collect(""))
	if n.tables() != 0 {
		t.Error("the rules of the earlier ADD are left")
	}
}

func TestAllRulesAreRemovedBeforeAnUninstallation(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "enforce")))
	other := tableMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, tableNamed("other"))
	must(t, transact(0, []message{other}))
	for range 2 {
		must(t, n.ports.removeAll())
	}
	if n.tables() != 1 {
		t.Error("not only the table of others is left")
	}
	if files, err := os.ReadDir(n.ports.folder); err != nil || len(files) != 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
	if !n.passes(arp(1, guestMAC, "0a0100c8", "0a0100fe")) {
		t.Error("the port still drops")
	}
}

func TestAllRulesOfAFullNodeAreRemoved(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "enforce")))
	for first := range 40 { // more than one datagram holds
		var added []message
		for i := range 100 {
			name := fmt.Sprintf("%s%024d", tablePrefix, first*100+i)
			added = append(added, tableMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, tableNamed(name)))
		}
		must(t, transact(0, added))
	}
	later := n.asked
	later.Env = map[string]string{"CNI_CONTAINERID": "c2", "CNI_IFNAME": "net1"}
	must(t, n.ports.write(later, golden(t, "enforce"), note{Index: 9})) // of an ADD that has not got its rules yet
	must(t, n.ports.removeAll())
	if n.tables() != 0 {
		t.Errorf("%d tables are left", n.tables())
	}
	if _, err := n.ports.read(tableName(n.asked)); !os.IsNotExist(err) {
		t.Errorf("the note of a port whose rules were removed is left: %v", err)
	}
	if _, err := n.ports.read(tableName(later)); err != nil {
		t.Errorf("the note of a port that gets rules is lost: %v", err)
	}
}

func TestANoteThatCannotBeWrittenLeavesNoFile(t *testing.T) {
	n := newNode(t, "veth")
	n.ports.folder = t.TempDir()
	must(t, unix.Mount("tmpfs", n.ports.folder, "tmpfs", 0, "size=16k"))
	t.Cleanup(func() { unix.Unmount(n.ports.folder, unix.MNT_DETACH) })
	os.WriteFile(filepath.Join(n.ports.folder, "other"), make([]byte, 64<<10), 0o600) // as much as fits
	guardPort(n.asked, n.ports, golden(t, "observe"))
	must(t, n.ports.check(n.asked))
	if err := n.ports.noteKernel(unix.EAFNOSUPPORT); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a refusal of the kernel on a full disk: %v", err)
	}
	if files, err := os.ReadDir(n.ports.folder); err != nil || len(files) != 1 {
		t.Errorf("files are left: %v, %v", files, err)
	}
}

func TestWhatAKilledProcessHasNotWrittenToTheEndIsRemovedLater(t *testing.T) {
	ports := guards{folder: t.TempDir()}
	for _, name := range []string{".note-1", ".note-2"} {
		must(t, os.WriteFile(filepath.Join(ports.folder, name), nil, 0o600))
	}
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(ports.folder, ".note-1"), long, long))
	must(t, ports.collect(""))
	if files, err := os.ReadDir(ports.folder); err != nil || len(files) != 1 || files[0].Name() != ".note-2" {
		t.Errorf("not only the file that may still be written is left: %v, %v", files, err)
	}
}

func TestADELRemovesTheNoteOfItsPortThatCannotBeRead(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.apply(golden(t, "observe")))
	path := filepath.Join(n.ports.folder, tableName(n.asked))
	must(t, os.WriteFile(path, nil, 0o600)) // as an older version did on a full disk
	for _, other := range []string{"", "another"} {
		if err := n.ports.collect(other); err == nil || n.tables() != 1 {
			t.Errorf("a GC or DEL that cannot know whether the port exists removed its rules: %v", err)
		}
	}
	must(t, n.ports.collect(tableName(n.asked)))
	if _, err := os.Stat(path); !os.IsNotExist(err) || n.tables() != 0 {
		t.Errorf("the note or the rules are left: %v", err)
	}
}

func TestAnADDAndTheRemovalOfEarlierRulesDoNotDisturbEachOther(t *testing.T) {
	n := newNode(t, "veth")
	name := tableName(n.asked)
	rules := golden(t, "enforce")
	remove := n.beside(func() error { return n.ports.collect(name) })
	for _, earlier := range []string{`{"index":9999}`, `{`} { // of an interface that is gone, and one that cannot be read
		for range 50 {
			must(t, n.apply(rules))
			must(t, os.WriteFile(filepath.Join(n.ports.folder, name), []byte(earlier), 0o600))
			ended := remove()
			must(t, n.apply(rules))
			must(t, <-ended)
			if _, err := n.ports.read(name); err != nil || n.tables() != 1 {
				t.Fatalf("the rules of the later ADD were removed, or its note: %d tables, %v", n.tables(), err)
			}
		}
	}
}

func TestAnADDDuringTheRemovalOfAllRulesHasRulesAndANoteOrNone(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "enforce")
	remove := n.beside(n.ports.removeAll)
	for range 50 {
		must(t, n.apply(rules))
		ended := remove()
		must(t, n.apply(rules))
		must(t, <-ended)
		if _, err := n.ports.read(tableName(n.asked)); (err == nil) != (n.tables() == 1) {
			t.Fatalf("%d tables, and the note: %v", n.tables(), err)
		}
	}
}

// beside returns a function that starts work in the network namespace of the test, and returns where the result comes.
func (n *node) beside(work func() error) (start func() <-chan error) {
	here, err := os.Open("/proc/thread-self/ns/net")
	must(n.t, err)
	begin, ended := make(chan bool), make(chan error)
	n.t.Cleanup(func() { close(begin) })
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET)
		for range begin {
			ended <- errors.Join(err, work())
		}
	}()
	return func() <-chan error {
		begin <- true
		return ended
	}
}

func TestOnlyRootCanLockTheFolderOfNotes(t *testing.T) {
	ports := guards{folder: t.TempDir()}
	must(t, os.Chmod(ports.folder, 0o755))
	must(t, ports.locked(func() error { return nil }))
	if folder, err := os.Stat(ports.folder); err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("the folder has the permissions %v, %v", folder.Mode(), err)
	}
}

func TestAnInterfaceOfAnotherKindHasNoRulesOfAnEarlierOneOfItsName(t *testing.T) {
	n := newNode(t, "macvlan")
	rules := golden(t, "enforce")
	rules.IsGuest = true
	must(t, n.apply(rules))
	netns, err := os.Open(n.asked.Env["CNI_NETNS"])
	must(t, err)
	defer netns.Close()
	inPod := "nsenter --net=" + n.asked.Env["CNI_NETNS"] + " "
	run(t, inPod+"ip link del net1")
	run(t, "ip link add vg type veth peer name net1 address 02:00:00:00:00:05 netns "+strconv.Itoa(n.pod.Process.Pid))
	must(t, n.apply(rules))
	if n.tables() != 1 || n.tablesIn(int(netns.Fd())) != 0 {
		t.Errorf("%d tables are on the host, and %d in the pod", n.tables(), n.tablesIn(int(netns.Fd())))
	}
	run(t, "ip link del vg")
	run(t, "ip link add link br0 name net1 address 02:00:00:00:00:05 netns "+strconv.Itoa(n.pod.Process.Pid)+" type macvlan mode bridge")
	must(t, n.apply(rules))
	if n.tables() != 0 || n.tablesIn(int(netns.Fd())) != 1 {
		t.Errorf("%d tables are on the host, and %d in the pod", n.tables(), n.tablesIn(int(netns.Fd())))
	}
}
