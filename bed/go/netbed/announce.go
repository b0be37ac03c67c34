package main

import (
	"bytes"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// announce sends what QEMU and the virtio driver of the guest send when the guest arrives: reverse ARP, and one message for each
// address.
func (g *guest) announce(n *nic, name string) error {
	frames := [][]byte{reverseARP(n.mac)}
	err := g.inside.run(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		for _, address := range addresses {
			frames = append(frames, announcement(address.IP, n.mac))
		}
		return err
	})
	if err != nil {
		return err
	}
	socket, index, err := openPacketSocket(g.machine, n.port)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	for _, frame := range frames {
		if err := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
			return err
		}
	}
	return nil
}

// reverseARP asks for the IPv4 address of a MAC address (RFC 903). Nobody answers, but switches learn its port.
func reverseARP(mac net.HardwareAddr) []byte {
	frame := bytes.Repeat([]byte{0xff}, 6)
	frame = append(append(frame, mac...), 0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3)
	frame = append(append(frame, mac...), 0, 0, 0, 0)
	frame = append(append(frame, mac...), 0, 0, 0, 0)
	return append(frame, make([]byte, 60-len(frame))...)
}
