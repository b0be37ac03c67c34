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

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
)

// link is a network interface.
type link struct {
	index, peer uint32
	flags       uint32
	name, kind  string
	mac         net.HardwareAddr
}

// port is where frames of a pod are filtered: on the host end of a veth pair when they come in, or on a macvlan interface when
// they leave the pod.
type port struct {
	device string
	mac    net.HardwareAddr
	hook   *nftables.ChainHook
	// Of the host end; 0: the rules are in the network namespace of the pod.
	index uint32
	// A file descriptor; 0: this one.
	netns int
}

// findPort finds the port of a pod's interface. The file is the network namespace of the pod. The parent of a macvlan interface
// is no port, because its traffic is that of others.
func findPort(file *os.File, name string, isGuest bool) (found port, err error) {
	netns := int(file.Fd())
	pod, err := findLink(netns, 0, name)
	switch {
	case err != nil:
		return found, fmt.Errorf("interface %s in %s: %w", name, file.Name(), err)
	case pod.kind == "veth":
		host, err := hostEnd(pod)
		return port{device: host.name, mac: pod.mac, hook: nftables.ChainHookIngress, index: host.index}, err
	case pod.kind == "macvlan" && isGuest:
		return port{device: name, mac: pod.mac, hook: nftables.ChainHookEgress, netns: netns}, nil
	case pod.kind == "macvlan":
		return found, fmt.Errorf("interface %s is of kind macvlan, which is filtered inside the pod, and the containers of a pod that is no "+
			"virtual machine can get past that: use the plugin bridge, or set guard.mode to Off", name)
	}
	return found, fmt.Errorf("interface %s is of kind %q, and only veth pairs and the macvlan interfaces of virtual machines can be "+
		"guarded: use the plugin bridge, or set guard.mode to Off", name, pod.kind)
}

// hostEnd returns the end in this network namespace of a veth pair.
func hostEnd(pod link) (host link, err error) {
	host, err = findLink(0, pod.peer, "")
	if err != nil {
		return host, fmt.Errorf("the host end of interface %s, with index %d: %w", pod.name, pod.peer, err)
	}
	if host.kind != "veth" || host.peer != pod.index {
		return host, fmt.Errorf("interface %s on the host is not the other end of interface %s", host.name, pod.name)
	}
	return host, nil
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
	found.flags = binary.NativeEndian.Uint32(data[8:])
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

// checkDown returns an error if an interface is up before it has its rules: then it may have sent something without them.
func checkDown(netns, name string) error {
	file, err := os.Open(netns)
	if err != nil {
		return fmt.Errorf("cannot open CNI_NETNS: %w", err)
	}
	defer file.Close()
	found, err := findLink(int(file.Fd()), 0, name)
	if err != nil {
		return fmt.Errorf("interface %s in %s: %w", name, netns, err)
	}
	if found.flags&syscall.IFF_UP != 0 {
		return fmt.Errorf("interface %s is up already, so it may have sent something: update the plugin bridge to 1.1.1 or newer, and for a "+
			"network without IPAM write \"disableContainerInterface\": true into its config", name)
	}
	return nil
}
