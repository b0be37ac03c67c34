package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

const (
	guestMAC     = "020000000005"
	neighbourMAC = "020000000006"
	broadcast    = "ffffffffffff"
	guest4       = "0a010005"
	guest6       = "fd000001000000000000000000000005"
	foreign6     = "fd000001000000000000000000000009"
	linkLocal    = "fe80000000000000aaaa000000000001"
	all6         = "ff020000000000000000000000000001"
	any6         = "00000000000000000000000000000000"
)

// node has a bridge with one port, in a network namespace of its own, and a pod behind it in another one.
type node struct {
	t     *testing.T
	ports guards
	asked request
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
	if kind == "veth" {
		run(t, "ip link add vg type veth peer name net1 address 02:00:00:00:00:05 netns "+pid)
		run(t, "ip link set vg master br0 addrgenmode none up")
	} else {
		run(t, "ip link add link br0 name net1 type macvlan mode bridge")
		run(t, "ip link set net1 netns "+pid)
	}
	n := &node{t: t, ports: guards{filepath.Join(t.TempDir(), "guards")}}
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
		_, err := unix.Write(n.send, each)
		must(n.t, err)
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

func (n *node) counted(name string) uint64 {
	n.t.Helper()
	conn, err := nftables.New()
	must(n.t, err)
	table := tableOf(tableName(n.asked))
	found, err := conn.GetObject(&nftables.CounterObj{Table: table, Name: name})
	must(n.t, err)
	return found.(*nftables.CounterObj).Packets
}

func (n *node) tables() int {
	n.t.Helper()
	conn, err := nftables.New()
	must(n.t, err)
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyNetdev)
	must(n.t, err)
	return len(tables)
}

func ethernet(source, etherType, payload string) string {
	return broadcast + source + etherType + payload
}

func arp(operation int, mac, sender, target string) string {
	return ethernet(guestMAC, "0806", "000108000604000"+strconv.Itoa(operation)+mac+sender+"000000000000"+target)
}

func reverseARP(source, mac string) string {
	return ethernet(source, "8035", "0001080006040003"+mac+"00000000"+mac+"00000000")
}

func ipv4(source string, protocol byte, payload string) string {
	header := []byte{0x45, 0, 0, byte(20 + len(payload)/2), 0, 0, 0, 0, 64, protocol, 0, 0}
	header, _ = hex.AppendDecode(header, []byte(source+"ffffffff"))
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	// a bridge drops headers with a wrong checksum if iptables sees its packets
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum+sum>>16))
	return ethernet(guestMAC, "0800", hex.EncodeToString(header)+payload)
}

func ipv6(source string, nextHeader byte, payload string) string {
	length := hex.EncodeToString([]byte{0, byte(len(payload) / 2), nextHeader})
	return ethernet(guestMAC, "86dd", "60000000"+length+"ff"+source+all6+payload)
}

func udp(source, destination int) string {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(source)), uint16(destination))
	return hex.EncodeToString(ports) + "00080000"
}

func icmp6(kind int, rest string) string {
	return hex.EncodeToString([]byte{byte(kind)}) + "000000" + "00000000" + rest
}

var frames = []struct{ name, frame, counter string }{
	{"ARP of the claim", arp(2, guestMAC, guest4, guest4), ""},
	{"an ARP probe of the claim's address", arp(1, guestMAC, "00000000", guest4), ""},
	{"IPv4 of the claim", ipv4(guest4, 6, udp(1, 2)), ""},
	{"a DHCP request without an address", ipv4("00000000", 17, udp(68, 67)), ""},
	{"IPv6 of the claim", ipv6(guest6, 6, udp(1, 2)), ""},
	{"IPv6 with a link-local address", ipv6(linkLocal, 58, icmp6(133, "")), ""},
	{"duplicate address detection", ipv6(any6, 58, icmp6(135, guest6)), ""},
	{"a neighbour advertisement of the claim", ipv6(guest6, 58, icmp6(136, guest6)), ""},
	{"a multicast report", ipv6(linkLocal, 0, "3a00050200000100"+icmp6(143, "")), ""},
	{"a fragment", ipv6(guest6, 44, "1100000100000001"+udp(1, 2)), ""},
	{"the guest's own reverse ARP", reverseARP(guestMAC, guestMAC), ""},
	{"another source MAC address", ethernet(neighbourMAC, "0800", ""), "source_mac"},
	{"reverse ARP of another MAC address", reverseARP(neighbourMAC, neighbourMAC), "source_mac"},
	{"reverse ARP for another MAC address", reverseARP(guestMAC, neighbourMAC), "ethertype"},
	{"a BPDU", "0180c2000000" + guestMAC + "0026424203", "bridge_control"},
	{"a VLAN tag", ethernet(guestMAC, "8100", "00050800"), "vlan_tag"},
	{"a provider tag", ethernet(guestMAC, "88a8", "000581000006"), "vlan_tag"},
	{"another protocol", ethernet(guestMAC, "88cc", ""), "ethertype"},
	{"ARP of another address", arp(2, guestMAC, "0a010009", guest4), "arp_sender"},
	{"ARP with another sender MAC address", arp(2, neighbourMAC, guest4, guest4), "arp_sender"},
	{"an ARP probe of another address", arp(1, guestMAC, "00000000", "0a010009"), "arp_sender"},
	{"a short ARP", ethernet(guestMAC, "0806", "0001"), "arp_sender"},
	{"IPv4 of another address", ipv4("0a010009", 6, udp(1, 2)), "ipv4_source"},
	{"IPv4 without an address", ipv4("00000000", 17, udp(68, 69)), "ipv4_source"},
	{"a DHCP server", ipv4(guest4, 17, udp(67, 68)), "dhcp_server"},
	{"a DHCP server with another source port", ipv4(guest4, 17, udp(1000, 68)), "dhcp_server"},
	{"an IGMP query", ipv4(guest4, 2, "1100000000000000"), "multicast_router"},
	{"VRRP", ipv4(guest4, 112, "2101640100000000"), "virtual_router"},
	{"IPv4 with a header that is too long", ethernet(guestMAC, "0800", "4f00001400000000400600000a010005ffffffff"), "malformed"},
	{"IPv6 of another address", ipv6(foreign6, 6, udp(1, 2)), "ipv6_source"},
	{"duplicate address detection of another address", ipv6(any6, 58, icmp6(135, foreign6)), "ipv6_source"},
	{"a router advertisement", ipv6(linkLocal, 58, icmp6(134, "")), "router_advertisement"},
	{"a router advertisement behind a hop-by-hop header", ipv6(linkLocal, 0, "3a00010400000000"+icmp6(134, "")), "extension_header"},
	{"a router advertisement behind options", ipv6(linkLocal, 60, "3a00010400000000"+icmp6(134, "")), "extension_header"},
	{"a router advertisement in a fragment", ipv6(linkLocal, 44, "3a00000100000001"+icmp6(134, "")), "router_advertisement"},
	{"options in a fragment", ipv6(linkLocal, 44, "3c00000100000001"+"3a00010400000000"), "extension_header"},
	{"a fragment in a fragment", ipv6(linkLocal, 44, "2c00000100000001"+"3a00000100000001"), "extension_header"},
	{"a redirect", ipv6(linkLocal, 58, icmp6(137, guest6+guest6)), "icmp_redirect"},
	{"a neighbour advertisement of another address", ipv6(guest6, 58, icmp6(136, foreign6)), "neighbour_target"},
	{"a neighbour advertisement in a fragment", ipv6(guest6, 44, "3a00000100000001"+icmp6(136, guest6)), "neighbour_target"},
	{"an MLD query", ipv6(linkLocal, 58, icmp6(130, any6)), "multicast_router"},
	{"a DHCPv6 server", ipv6(linkLocal, 17, udp(547, 546)), "dhcp_server"},
	{"a DHCPv6 server in a fragment", ipv6(linkLocal, 44, "1100000100000001"+udp(547, 546)), "dhcp_server"},
}

func TestEnforceDropsWhatIsNotOfTheClaim(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.ports.apply(n.asked, golden(t, "enforce")))
	for _, each := range frames {
		before := uint64(0)
		if each.counter != "" {
			before = n.counted(each.counter)
		}
		if passed := n.passes(each.frame); passed != (each.counter == "") {
			t.Errorf("%s: passed is %v", each.name, passed)
		}
		if each.counter != "" && n.counted(each.counter) != before+1 {
			t.Errorf("%s is not counted as %s", each.name, each.counter)
		}
	}
}

func TestObservePassesAndCounts(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.ports.apply(n.asked, golden(t, "observe")))
	if !n.passes(arp(2, guestMAC, "0a010009", guest4)) || n.counted("arp_sender") != 1 {
		t.Error("ARP of another address does not pass, or is not counted")
	}
}

func TestHoldEndsWithTheGuestsReverseARP(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "observed-hold")
	must(t, n.ports.apply(n.asked, rules))
	n.expectHeld(arp(2, guestMAC, guest4, guest4))
	n.write(reverseARP(neighbourMAC, neighbourMAC))
	n.expectHeld(arp(2, guestMAC, guest4, guest4))
	if !n.passes(reverseARP(guestMAC, guestMAC)) || !n.passes(arp(2, guestMAC, guest4, guest4)) {
		t.Error("the guest is held after its own reverse ARP")
	}
	for i := range rules.Sets {
		if rules.Sets[i].TimeoutSeconds > 0 {
			rules.Sets[i].TimeoutSeconds = 1
		}
	}
	must(t, n.ports.apply(n.asked, rules))
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
	rules := golden(t, "enforce")
	if err := n.ports.check(n.asked, rules); err == nil || !strings.Contains(err.Error(), "0 of 10 rules in chain port") {
		t.Errorf("without rules: %v", err)
	}
	must(t, n.ports.apply(n.asked, rules))
	must(t, n.ports.check(n.asked, rules))
	if err := n.ports.check(n.asked, golden(t, "allowed")); err == nil || !strings.Contains(err.Error(), "7 rules in chain from_ipv4") {
		t.Errorf("with other rules: %v", err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	n := newNode(t, "veth")
	for range 2 {
		must(t, n.ports.apply(n.asked, golden(t, "enforce")))
	}
	must(t, n.ports.collect())
	if n.tables() != 1 {
		t.Fatal("GC removed the rules of an interface that exists")
	}
	run(t, "ip link del vg")
	must(t, n.ports.collect())
	if n.tables() != 0 {
		t.Error("GC left the rules of an interface that is gone")
	}
	if err := n.ports.apply(n.asked, golden(t, "enforce")); err == nil {
		t.Error("rules were applied to an interface that is gone")
	}
	must(t, n.ports.remove(tableName(n.asked)))
	files, err := os.ReadDir(n.ports.folder)
	if err != nil || len(files) != 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
}

func TestDELRemovesTheRules(t *testing.T) {
	n := newNode(t, "veth")
	must(t, n.ports.apply(n.asked, golden(t, "enforce")))
	must(t, n.ports.remove(tableName(n.asked)))
	if n.tables() != 0 {
		t.Error("DEL left rules")
	}
	must(t, n.ports.remove(tableName(n.asked)))
}

func TestOnlyVethPairsAreGuarded(t *testing.T) {
	n := newNode(t, "macvlan")
	err := n.ports.apply(n.asked, golden(t, "enforce"))
	if err == nil || !strings.Contains(err.Error(), `of kind "macvlan"`) {
		t.Errorf("macvlan: %v", err)
	}
	if n.tables() != 0 {
		t.Error("there are rules at the parent of a macvlan interface")
	}
}

func TestInvalidRulesApplyNothing(t *testing.T) {
	n := newNode(t, "veth")
	rules := golden(t, "enforce")
	last := &rules.Chains[0].Rules[0]
	last.Verdict = "goto nowhere"
	if err := n.ports.apply(n.asked, rules); err == nil {
		t.Error("invalid rules are no error")
	}
	if n.tables() != 0 {
		t.Error("half of the rules were applied")
	}
	if err := explain(syscall.EOPNOTSUPP); !strings.Contains(err.Error(), "CONFIG_NF_TABLES_NETDEV") || !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
}
