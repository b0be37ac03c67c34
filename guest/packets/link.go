package main

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// packetLink is an interface of the kernel, to which frames are written as they are.
type packetLink struct {
	conn    *packet.Conn
	raw     syscall.RawConn // of conn
	index   int
	address mac
	ring    *ring
}

func openLink(name string) (*packetLink, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	if len(found.HardwareAddr) != 6 {
		return nil, errors.New("not an Ethernet interface")
	}
	opened, err := listenTo(found, unix.ETH_P_ALL, kernelFilter())
	if err != nil {
		return nil, err
	}
	opened.address = mac(found.HardwareAddr)
	if err := opened.join(groups(opened.address)); err != nil {
		return nil, errors.Join(err, opened.conn.Close())
	}
	return opened, nil
}

// listenTo opens a socket whose filter drops frames from the start.
func listenTo(device *net.Interface, protocol int, filter []bpf.Instruction) (*packetLink, error) {
	program, err := bpf.Assemble(filter)
	if err != nil {
		return nil, err
	}
	conn, err := packet.Listen(device, packet.Raw, protocol, &packet.Config{Filter: program})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	ring, err := newRing(raw)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &packetLink{conn: conn, raw: raw, index: device.Index, ring: ring}, nil
}

// groups returns the IPv6 groups that a responder listens to.
func groups(of mac) []netip.Addr {
	return []netip.Addr{allNodes, allRouters, allDHCP6Servers, solicitedNode(linkLocal(of))}
}

// join makes the interface take frames for groups.
func (l *packetLink) join(groups []netip.Addr) error {
	var failed error
	err := l.raw.Control(func(fd uintptr) {
		for _, group := range groups {
			address := groupMAC(group)
			request := unix.PacketMreq{Ifindex: int32(l.index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(address))}
			copy(request.Address[:], address[:])
			failed = errors.Join(failed, unix.SetsockoptPacketMreq(int(fd), unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &request))
		}
	})
	return errors.Join(err, failed)
}

func (l *packetLink) mac() mac { return l.address }

func (l *packetLink) hasAddress() (bool, error) {
	found, err := net.InterfaceByIndex(l.index)
	if err != nil {
		return false, err
	}
	addresses, err := found.Addrs()
	return len(addresses) > 0, err
}

// send writes a frame. It goes round the runtime's poller, which costs as much as the kernel's part, unless the kernel takes
// no more for now.
func (l *packetLink) send(frame []byte) error {
	err := error(unix.EAGAIN)
	if failed := l.raw.Control(func(fd uintptr) { _, err = unix.Write(int(fd), frame) }); failed != nil {
		return failed
	}
	if errors.Is(err, unix.EAGAIN) {
		_, err = l.conn.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]})
	}
	return err
}

// lost returns how many frames the kernel dropped since the last call because the ring was full.
func (l *packetLink) lost() uint64 {
	stats, err := l.conn.Stats()
	if err != nil {
		return 0
	}
	return uint64(stats.Drops)
}

// receive passes all frames to a function. It returns when the interface is gone or down.
func (l *packetLink) receive(take func(frame []byte, sums checksums)) error {
	return l.ring.receive(take)
}
