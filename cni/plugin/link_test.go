package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheGuestOfAMacvlanInterfaceIsGuardedInThePod(t *testing.T) {
	n := newNode(t, "macvlan")
	rules := golden(t, "enforce")
	rules.IsGuest = true
	must(t, n.apply(rules))
	for _, isRenamed := range []bool{false, true} {
		if isRenamed { // as the bridge binding of KubeVirt does, which gives the old name to another device
			inPod := "nsenter --net=" + n.asked.Env["CNI_NETNS"] + " ip link "
			run(t, inPod+"set net1 down")
			run(t, inPod+"set net1 name net1-nic")
			run(t, inPod+"add net1 type bridge")
			run(t, inPod+"set net1-nic up")
			_, err := unix.GetsockoptInt(n.send, unix.SOL_SOCKET, unix.SO_ERROR) // it was down
			must(t, err)
		}
		for _, each := range frames {
			if passed := n.passes(each.frame); passed != (each.counter == "") {
				t.Errorf("%s passes: %v, renamed: %v", each.name, passed, isRenamed)
			}
		}
	}
	must(t, n.ports.check(n.asked))
	if n.tables() != 0 {
		t.Error("there are rules at the parent of a macvlan interface")
	}
	must(t, n.ports.collect(""))
	if n.tablesInPod() != 1 {
		t.Error("GC removed the rules of a pod that exists")
	}
	must(t, n.ports.collect(tableName(n.asked)))
	if n.tablesInPod() != 1 {
		t.Error("DEL, which comes before that of the interface, removed the rules")
	}
	must(t, n.pod.Process.Kill())
	n.pod.Wait()
	must(t, n.ports.collect("another"))
	if _, err := n.ports.read(tableName(n.asked)); !os.IsNotExist(err) {
		t.Errorf("the note of a pod that is gone is left: %v", err)
	}
}

func TestTheNewNameIsThatOfKubeVirt(t *testing.T) {
	for name, expected := range map[string]string{"net1": "net1-nic", "eth0": "eth0-nic", "pod16477688c0e": "16477688c0e-nic", "toolongprefix": ""} {
		if found := renamed(name); found != expected {
			t.Errorf("%s is renamed to %q", name, found)
		}
	}
}

func TestAPodCannotPointToThePortOfAnother(t *testing.T) {
	n := newNode(t, "veth")
	victim, err := net.InterfaceByName("vg")
	must(t, err)
	attacker := exec.Command("sleep", "600")
	attacker.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	must(t, attacker.Start())
	t.Cleanup(func() { attacker.Process.Kill(); attacker.Wait() })
	own, err := os.Open(n.asked.Env["CNI_NETNS"])
	must(t, err)
	defer own.Close()
	end, err := findLink(int(own.Fd()), 0, "net1")
	must(t, err)
	pid := strconv.Itoa(attacker.Process.Pid)
	n.asked.Env["CNI_NETNS"] = "/proc/" + pid + "/ns/net"
	// Both ends have the numbers of the victim's pair; the far end is in a namespace in which its number is free.
	run(t, "nsenter --net="+n.asked.Env["CNI_NETNS"]+" ip link add name net1 index "+strconv.Itoa(int(end.index))+
		" type veth peer name far index "+strconv.Itoa(victim.Index)+" netns "+filepath.Base(filepath.Dir(filepath.Dir(own.Name()))))
	if err := n.apply(golden(t, "enforce")); err == nil || !strings.Contains(err.Error(), "is not the other end") {
		t.Errorf("the port of another pod: %v", err)
	}
	if n.tables() != 0 {
		t.Error("the port of another pod has rules")
	}
}

func TestContainersBehindMacvlanAreNotGuarded(t *testing.T) {
	n := newNode(t, "macvlan")
	err := n.apply(golden(t, "enforce"))
	if err == nil || !strings.Contains(err.Error(), "is of kind macvlan") {
		t.Errorf("macvlan: %v", err)
	}
	if n.tables() != 0 || n.tablesInPod() != 0 {
		t.Error("there are rules")
	}
}

func TestOnlyVethPairsAndMacvlanAreGuarded(t *testing.T) {
	n := newNode(t, "bridge")
	rules := golden(t, "enforce")
	rules.IsGuest = true
	err := n.apply(rules)
	if err == nil || !strings.Contains(err.Error(), `of kind "bridge"`) {
		t.Errorf("bridge: %v", err)
	}
}

func (n *node) tablesInPod() int {
	n.t.Helper()
	netns, err := os.Open(n.asked.Env["CNI_NETNS"])
	must(n.t, err)
	defer netns.Close()
	return n.tablesIn(int(netns.Fd()))
}

func TestAnInterfaceThatIsUpIsRefused(t *testing.T) {
	n := newNode(t, "veth")
	if err := n.ports.apply(n.asked, golden(t, "enforce"), false); err == nil || !strings.Contains(err.Error(), "interface net1 is up already") {
		t.Errorf("up: %v", err)
	}
	run(t, "nsenter --net="+n.asked.Env["CNI_NETNS"]+" ip link set net1 down")
	must(t, n.ports.apply(n.asked, golden(t, "enforce"), false))
}
