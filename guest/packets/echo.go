//go:build !guests

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pingTries      = 3
	pingTimeout    = time.Second
	icmp6Echo      = 128
	icmp6EchoReply = 129
	icmpHeader     = 8
	ipv4Length     = 20
)

// ping sends echo requests until one is answered. size is that of the whole packet, which nobody may fragment.
func ping(device *net.Interface, to netip.Addr, size int) error {
	var failed error
	for try := range pingTries {
		if failed = pingOnce(device, to, size, uint16(try)); failed == nil || errors.Is(failed, unix.EMSGSIZE) {
			break
		}
	}
	return failed
}

func pingOnce(device *net.Interface, to netip.Addr, size int, sequence uint16) error {
	socket, err := openEcho(device.Name, to.Is6())
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	header, request, reply := ipv4Length, byte(icmpEcho), byte(icmpEchoReply)
	if to.Is6() {
		header, request, reply = 40, icmp6Echo, icmp6EchoReply
	}
	message := make([]byte, max(size-header, icmpHeader))
	message[0] = request
	binary.BigEndian.PutUint16(message[4:], uint16(os.Getpid()))
	binary.BigEndian.PutUint16(message[6:], sequence)
	if to.Is4() {
		binary.BigEndian.PutUint16(message[2:], checksum(message))
	} // the kernel does it for ICMPv6
	if err := unix.Sendto(socket, message, 0, socketAddress(device, to)); err != nil {
		return fmt.Errorf("cannot send %d bytes: %w", size, err)
	}
	buffer := make([]byte, size+64)
	for deadline := time.Now().Add(pingTimeout); time.Now().Before(deadline); {
		length, _, err := unix.Recvfrom(socket, buffer, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		got := buffer[:length]
		if to.Is4() {
			var ok bool
			if got, ok = bodyOfIPv4(got); !ok {
				continue
			}
		}
		if len(got) == len(message) && got[0] == reply && [4]byte(got[4:]) == [4]byte(message[4:]) {
			return nil
		}
	}
	return fmt.Errorf("no answer to %d bytes within %s", size, pingTimeout)
}

// openEcho opens a socket for ICMP on one interface, which needs the capability NET_RAW.
func openEcho(device string, isIPv6 bool) (int, error) {
	family, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	level, option, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
	if isIPv6 {
		family, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
		level, option, value = unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1
	}
	socket, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return 0, err
	}
	timeout := unix.NsecToTimeval((pingTimeout / 10).Nanoseconds())
	err = errors.Join(
		unix.BindToDevice(socket, device),
		unix.SetsockoptInt(socket, level, option, value),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
	)
	if err != nil {
		return 0, errors.Join(err, unix.Close(socket))
	}
	return socket, nil
}

func socketAddress(device *net.Interface, to netip.Addr) unix.Sockaddr {
	if to.Is4() {
		return &unix.SockaddrInet4{Addr: to.As4()}
	}
	return &unix.SockaddrInet6{Addr: to.As16(), ZoneId: uint32(device.Index)}
}
