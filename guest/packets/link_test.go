package main

import (
	"encoding/binary"
	"errors"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// openWire returns our end of a pair of interfaces in a network namespace of its own, and a function that sends frames
// from the other end. It skips a test that may not create namespaces.
func openWire(t *testing.T) (*packetLink, func(frame []byte)) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test, and with it the namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	for _, line := range []string{
		"link add guest0 type veth peer name other0", "link set guest0 address " + ownMAC.String(), "link set other0 address " + guestMAC.String(),
		"link set guest0 arp off", "link set other0 arp off", "link set guest0 up", "link set other0 up",
	} {
		if output, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %s", line, output)
		}
	}
	opened, err := openLink("guest0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.conn.Close() })
	other, err := net.InterfaceByName("other0")
	if err != nil {
		t.Fatal(err)
	}
	sender, err := packet.Listen(other, packet.Raw, unix.ETH_P_LOOP, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sender.Close() })
	return opened, func(frame []byte) {
		if _, err := sender.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]}); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for a condition of another goroutine or of the kernel.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not happen", what)
		}
	}
}

// The buffer of a socket has room for some hundred frames by default.
func TestFramesOfManyGuestsWaitInTheRing(t *testing.T) {
	link, send := openWire(t)
	const guests = slots * 3 / 4
	var received atomic.Int64
	for round := range 3 { // the ring begins anew
		for number := range guests {
			send(discover(macOf(number)))
		}
		if round == 0 {
			go link.receive(func(frame []byte, _ checksums) {
				if len(frame) > etherLength && frame[6] == 2 {
					received.Add(1)
				}
			})
		}
		until(t, "the last frame", func() bool { return received.Load() >= int64(guests*(round+1)) })
	}
	if lost := link.lost(); lost > 0 {
		t.Fatalf("%d frames are lost", lost)
	}
}

func TestFramesThatDoNotFitIntoTheRingAreCounted(t *testing.T) {
	link, send := openWire(t)
	const more = 100
	for number := range slots + more {
		send(discover(macOf(number)))
	}
	if lost := link.lost(); lost < more || lost > more+slots/100 { // the kernel itself sends some
		t.Fatalf("%d frames are lost", lost)
	}
	if lost := link.lost(); lost > 0 {
		t.Fatalf("%d frames are counted twice", lost)
	}
}

func TestLinkThatGoesDownEndsReceiving(t *testing.T) {
	link, _ := openWire(t)
	ended := make(chan error, 1)
	go func() { ended <- link.receive(func([]byte, checksums) {}) }()
	if output, err := exec.Command("ip", "link", "set", "guest0", "down").CombinedOutput(); err != nil {
		t.Fatalf("%s", output)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, unix.ENETDOWN) {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}

// A priority of 802.1p alone makes no VLAN.
func TestFramesWithAPriorityAreReadAndThoseOfAVLANAreNot(t *testing.T) {
	link, send := openWire(t)
	tagged := func(frame []byte, priority, vlan byte) []byte {
		tag := []byte{0x81, 0, priority << 5, vlan}
		return append(append(append([]byte{}, frame[:12]...), tag...), frame[12:]...)
	}
	got := make(chan mac, 16)
	go link.receive(func(frame []byte, _ checksums) {
		if _, ok := parseIPv4(frame[etherLength:]); ok {
			got <- mac(frame[6:12])
		}
	})
	send(tagged(discover(guestMAC), 5, 7))
	send(tagged(discover(plainMAC), 5, 0))
	send(discover(otherMAC))
	for _, want := range []mac{plainMAC, otherMAC} {
		select {
		case from := <-got:
			if from != want {
				t.Fatalf("from %s, not %s", from, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing from %s", want)
		}
	}
}

// A bit that flips on the way must not become an answer to another guest, or with another address.
func TestFramesWithAWrongChecksumAreDropped(t *testing.T) {
	solicit := from6(guestMAC, 1, iaOf(1))
	for name, row := range map[string]struct {
		frame []byte
		flip  int // offset of the byte
	}{
		"the header of IPv4":  {discover(guestMAC), etherLength + 8},
		"a message of DHCPv4": {discover(guestMAC), etherLength + 28 + 8},
		"a message of DHCPv6": {solicit, len(solicit) - 1},
		"a solicitation":      {solicitation(guestMAC, guestLinkLocal), etherLength + 40 + 5},
	} {
		w := newWorld(t)
		w.wait(time.Minute)
		w.take()
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		w.counter = newCounter()
		w.receive(w.now, row.frame, checksumsUnknown)
		if sent := w.take(); len(sent) != 1 {
			t.Fatalf("%s: %d answers to the right frame; dropped %v", name, len(sent), w.counter.dropped)
		}
		row.frame[row.flip] ^= 1
		w.receive(w.now, row.frame, checksumsUnknown)
		w.expectNoFrames(w.take())
		w.expectDropped(dropCorrupt)
	}
	header := discover(guestMAC)
	header[etherLength+8] ^= 1
	good := newWorld(t)
	good.expectNoFrames(good.hear(header)) // the kernel knows the checksum of UDP, not that of the header
	good.expectDropped(dropCorrupt)
	without := discover(guestMAC) // UDP on IPv4 may have no checksum
	without[etherLength+20+6], without[etherLength+20+7] = 0, 0
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	w.receive(w.now, without, checksumsUnknown)
	if len(w.take()) != 1 {
		t.Fatal("a message without a checksum is not answered")
	}
}

// Linux accepts them, too: what follows the datagram is ignored.
func TestDatagramsThatAreShorterThanTheirPacketsAreAnswered(t *testing.T) {
	four, six := append(discover(guestMAC), 1, 2, 3), append(from6(guestMAC, 1, iaOf(1)), 1, 2, 3)
	binary.BigEndian.PutUint16(four[etherLength+2:], binary.BigEndian.Uint16(four[etherLength+2:])+3)
	withHeaderChecksum(four)
	binary.BigEndian.PutUint16(six[etherLength+4:], binary.BigEndian.Uint16(six[etherLength+4:])+3)
	for _, frame := range [][]byte{four, six} {
		w := newWorld(t)
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		w.receive(w.now, frame, checksumsUnknown)
		if len(w.take()) != 1 {
			t.Fatalf("not answered; dropped %v", w.counter.dropped)
		}
		frame[len(frame)-4] ^= 1
		w.receive(w.now, frame, checksumsUnknown)
		w.expectNoFrames(w.take())
		w.expectDropped(dropCorrupt)
	}
}

// Kernels of guests on the same node leave checksums to hardware that never comes.
func TestKernelSaysThatChecksumsOfRawFramesAreUnknown(t *testing.T) {
	link, send := openWire(t)
	known := make(chan checksums, 1)
	go link.receive(func(frame []byte, sums checksums) {
		if _, ok := parseIPv4(frame[etherLength:]); ok {
			known <- sums
		}
	})
	send(discover(guestMAC))
	select {
	case sums := <-known:
		if sums != checksumsUnknown {
			t.Fatal("they are good")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no frame")
	}
}
