package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// node has a bridge with one port, in a network namespace of its own, and a pod behind it in another one.
type node struct {
	t     *testing.T
	ports guards
	asked request
	pod   *exec.Cmd
	send  int // packet socket in the pod
	seen  int // packet socket at the bridge
}

func newNode(t *testing.T, kind string) *node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root: the rules are not tested")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("network namespaces are not permitted: the rules are not tested: " + err.Error())
	}
	pod := exec.Command("sleep", "600")
	pod.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	must(t, pod.Start())
	t.Cleanup(func() { pod.Process.Kill(); pod.Wait() })
	pid := strconv.Itoa(pod.Process.Pid)
	run(t, "ip link add br0 type bridge")
	run(t, "ip link set br0 addrgenmode none promisc on up")
	switch kind {
	case "veth":
		run(t, "ip link add vg type veth peer name net1 address 02:00:00:00:00:05 netns "+pid)
		run(t, "ip link set vg master br0 addrgenmode none up")
	case "macvlan":
		run(t, "ip link add link br0 name net1 address 02:00:00:00:00:05 netns "+pid+" type macvlan mode bridge")
	default:
		run(t, "ip link add name net1 netns "+pid+" type "+kind)
	}
	n := &node{t: t, pod: pod, ports: guards{folder: filepath.Join(t.TempDir(), "guards")}}
	netns := "/proc/" + pid + "/ns/net"
	n.asked = request{Env: map[string]string{"CNI_CONTAINERID": "c1", "CNI_IFNAME": "net1", "CNI_NETNS": netns}}
	run(t, "nsenter --net="+netns+" ip link set net1 addrgenmode none up")
	n.seen = packetSocket(t, "br0")
	host, err := os.Open("/proc/thread-self/ns/net")
	must(t, err)
	file, err := os.Open(netns)
	must(t, err)
	must(t, unix.Setns(int(file.Fd()), unix.CLONE_NEWNET))
	n.send = packetSocket(t, "net1")
	must(t, unix.Setns(int(host.Fd()), unix.CLONE_NEWNET))
	return n
}

func packetSocket(t *testing.T, device string) int {
	t.Helper()
	found, err := net.InterfaceByName(device)
	must(t, err)
	protocol := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, protocol)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(protocol), Ifindex: found.Index}))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
	return fd
}

func run(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func golden(t *testing.T, name string) *ruleSet {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "agent", "guard", "golden", name+".json"))
	must(t, err)
	var rules ruleSet
	must(t, json.Unmarshal(text, &rules))
	return &rules
}

// passes sends a frame from the pod, and then one that passes. It reports whether the first one reached the bridge.
func (n *node) passes(digits string) bool {
	n.t.Helper()
	frame, err := hex.DecodeString(digits)
	must(n.t, err)
	frame = append(frame, make([]byte, max(0, 60-len(frame)))...)
	marker, _ := hex.DecodeString(arp(1, guestMAC, guest4, "0a0100fe") + strings.Repeat("ee", 18))
	for _, each := range [][]byte{frame, marker} {
		// a packet that is dropped on its way out is an error
		if _, err := unix.Write(n.send, each); err != unix.ENOBUFS {
			must(n.t, err)
		}
	}
	buffer := make([]byte, 2048)
	for passed := false; ; {
		size, err := unix.Read(n.seen, buffer)
		if err != nil {
			n.t.Fatal("the frame that must pass did not reach the bridge: ", err)
		}
		if bytes.Equal(buffer[:size], marker) {
			return passed
		}
		// a bridge takes off the padding if iptables sees its packets
		passed = passed || bytes.HasPrefix(frame, buffer[:size])
	}
}

// apply gives the pod's interface rules although it is up, so that the packet socket stays.
func (n *node) apply(rules *ruleSet) error {
	return n.ports.apply(n.asked, rules, true)
}

func (n *node) counted(name string) uint64 {
	n.t.Helper()
	of := attributes{}.text(unix.NFTA_OBJ_TABLE, tableName(n.asked)).text(unix.NFTA_OBJ_NAME, name)
	of = of.number(unix.NFTA_OBJ_TYPE, unix.NFT_OBJECT_COUNTER)
	found, err := exchange(unix.NETLINK_NETFILTER, 0, tableMessage(unix.NFT_MSG_GETOBJ, 0, of))
	must(n.t, err)
	counter, err := parseAttributes(found[0].body[4:])
	must(n.t, err)
	counts, err := parseAttributes(counter[unix.NFTA_OBJ_DATA])
	must(n.t, err)
	return binary.BigEndian.Uint64(counts[unix.NFTA_COUNTER_PACKETS])
}

func (n *node) tables() int { return n.tablesIn(0) }

func (n *node) tablesIn(netns int) int {
	n.t.Helper()
	tables, err := exchange(unix.NETLINK_NETFILTER, netns, tableMessage(unix.NFT_MSG_GETTABLE, unix.NLM_F_DUMP, nil))
	must(n.t, err)
	return len(tables)
}
