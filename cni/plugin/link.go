package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/mdlayher/netlink"
)

// link is a network interface.
type link struct {
	index, peer uint32
	name, kind  string
	mac         net.HardwareAddr
}

// hostEnd returns the end in this network namespace of a pod's interface, and the pod's end. Only a veth pair has one: the
// kernel names the parent of a macvlan interface in the same attribute, and its traffic is that of others.
func hostEnd(netns, name string) (host, pod link, err error) {
	file, err := os.Open(netns)
	if err != nil {
		return host, pod, fmt.Errorf("cannot open CNI_NETNS: %w", err)
	}
	defer file.Close()
	pod, err = findLink(int(file.Fd()), 0, name)
	if err != nil {
		return host, pod, fmt.Errorf("interface %s in %s: %w", name, netns, err)
	}
	if pod.kind != "veth" {
		return host, pod, fmt.Errorf("interface %s is of kind %q, and only veth pairs have a port on the host that can be "+
			"guarded: use the plugin bridge, or set guard.mode to Off", name, pod.kind)
	}
	host, err = findLink(0, pod.peer, "")
	if err != nil {
		return host, pod, fmt.Errorf("the host end of interface %s, with index %d: %w", name, pod.peer, err)
	}
	if host.kind != "veth" || host.peer != pod.index {
		return host, pod, fmt.Errorf("interface %s on the host is not the other end of interface %s", host.name, name)
	}
	return host, pod, nil
}

// findLink finds an interface by its index, or by its name if index is 0. The namespace is a file descriptor; 0: this one.
func findLink(netns int, index uint32, name string) (found link, err error) {
	conn, err := netlink.Dial(syscall.NETLINK_ROUTE, &netlink.Config{NetNS: netns})
	if err != nil {
		return found, err
	}
	defer conn.Close()
	header := syscall.IfInfomsg{Index: int32(index)}
	data := bytes.Clone((*[syscall.SizeofIfInfomsg]byte)(unsafe.Pointer(&header))[:])
	if index == 0 {
		named, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: syscall.IFLA_IFNAME, Data: append([]byte(name), 0)}})
		if err != nil {
			return found, err
		}
		data = append(data, named...)
	}
	ask := netlink.Message{Header: netlink.Header{Type: syscall.RTM_GETLINK, Flags: netlink.Request}, Data: data}
	answers, err := conn.Execute(ask)
	if err != nil {
		return found, err
	}
	for _, answer := range answers {
		if len(answer.Data) >= syscall.SizeofIfInfomsg {
			return parseLink(answer.Data)
		}
	}
	return found, errors.New("the kernel did not describe it")
}

func parseLink(data []byte) (found link, err error) {
	found.index = binary.NativeEndian.Uint32(data[4:])
	decoder, err := netlink.NewAttributeDecoder(data[syscall.SizeofIfInfomsg:])
	if err != nil {
		return found, err
	}
	for decoder.Next() {
		switch decoder.Type() {
		case syscall.IFLA_IFNAME:
			found.name = decoder.String()
		case syscall.IFLA_ADDRESS:
			found.mac = decoder.Bytes()
		case syscall.IFLA_LINK:
			found.peer = decoder.Uint32()
		case syscall.IFLA_LINKINFO:
			decoder.Nested(func(info *netlink.AttributeDecoder) error {
				for info.Next() {
					if info.Type() == 1 { // IFLA_INFO_KIND
						found.kind = info.String()
					}
				}
				return info.Err()
			})
		}
	}
	return found, decoder.Err()
}
