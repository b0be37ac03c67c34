package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// link is a network interface.
type link struct {
	index, peer uint32
	// Of the network namespace of the peer, as this one knows it; nil: this one.
	peerNetns  []byte
	flags      uint32
	name, kind string
	mac        []byte
}

// port is where frames of a pod are filtered: on the host end of a veth pair when they come in, or on a macvlan interface when
// they leave the pod.
type port struct {
	device string
	// What KubeVirt renames the device to; empty if it does not.
	renamed string
	mac     []byte
	hook    uint32
	// Of the host end; 0: the rules are in the network namespace of the pod.
	index uint32
	// A file descriptor; 0: this one.
	netns int
	// The pod's end is up, so it may have sent something.
	isUp bool
}

// findPort finds the port of a pod's interface. The file is the network namespace of the pod. The parent of a macvlan interface
// is no port, because its traffic is that of others.
func findPort(file *os.File, name string, isGuest bool) (found port, err error) {
	netns := int(file.Fd())
	pod, err := findLink(netns, 0, name)
	isUp := pod.flags&unix.IFF_UP != 0
	switch {
	case err != nil:
		return found, fmt.Errorf("interface %s in %s: %w", name, file.Name(), err)
	case pod.kind == "veth":
		host, err := hostEnd(netns, pod)
		return port{device: host.name, mac: pod.mac, hook: unix.NF_NETDEV_INGRESS, index: host.index, isUp: isUp}, err
	case pod.kind == "macvlan" && isGuest:
		return port{device: name, renamed: renamed(name), mac: pod.mac, hook: unix.NF_NETDEV_EGRESS, netns: netns, isUp: isUp}, nil
	case pod.kind == "macvlan":
		return found, fmt.Errorf("interface %s is of kind macvlan, which is filtered inside the pod, and the containers of a pod that is no "+
			"virtual machine can get past that: use the plugin bridge, or set guard.mode to Off", name)
	}
	return found, fmt.Errorf("interface %s is of kind %q, and only veth pairs and the macvlan interfaces of virtual machines can be "+
		"guarded: use the plugin bridge, or set guard.mode to Off", name, pod.kind)
}

// renamed returns the name that the bridge binding of KubeVirt gives the interface of a launcher, as its function
// GenerateNewBridgedVmiInterfaceName does. An interface whose new name would be too long keeps its own.
func renamed(name string) string {
	if after := strings.TrimPrefix(name, "pod") + "-nic"; len(after) < unix.IFNAMSIZ {
		return after
	}
	return ""
}

// hostEnd returns the end in this network namespace of a veth pair. A pod can make a pair whose numbers are those of a neighbour's, so
// the other end must be in the pod's own network namespace.
func hostEnd(netns int, pod link) (host link, err error) {
	host, err = findLink(0, pod.peer, "")
	if err != nil {
		return host, fmt.Errorf("the host end of interface %s, with index %d: %w", pod.name, pod.peer, err)
	}
	id, err := netnsID(netns)
	if err != nil {
		return host, fmt.Errorf("the id of the network namespace of interface %s: %w", pod.name, err)
	}
	if host.kind != "veth" || host.peer != pod.index || id == nil || !bytes.Equal(id, host.peerNetns) {
		return host, fmt.Errorf("interface %s on the host is not the other end of interface %s", host.name, pod.name)
	}
	return host, nil
}

// netnsID returns the number by which this network namespace knows another one, as bytes; nil: it does not.
func netnsID(netns int) ([]byte, error) {
	body := attributes(make([]byte, 4)).bytes(unix.NETNSA_FD, binary.NativeEndian.AppendUint32(nil, uint32(netns)))
	answers, err := exchange(unix.NETLINK_ROUTE, 0, message{kind: unix.RTM_GETNSID, body: body})
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 || len(answers[0].body) < 4 {
		return nil, errors.New("the kernel did not describe it")
	}
	described, err := parseAttributes(answers[0].body[4:])
	id := described[unix.NETNSA_NSID]
	if len(id) != 4 || int32(binary.NativeEndian.Uint32(id)) < 0 {
		return nil, err
	}
	return id, err
}

// findLink finds an interface by its index, or by its name if index is 0. The namespace is a file descriptor; 0: this one.
func findLink(netns int, index uint32, name string) (found link, err error) {
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], index)
	if index == 0 {
		body = attributes(body).text(unix.IFLA_IFNAME, name)
	}
	answers, err := exchange(unix.NETLINK_ROUTE, netns, message{kind: unix.RTM_GETLINK, body: body})
	if err != nil {
		return found, err
	}
	if len(answers) == 0 || len(answers[0].body) < unix.SizeofIfInfomsg {
		return found, errors.New("the kernel did not describe it")
	}
	return parseLink(answers[0].body)
}

func parseLink(body []byte) (found link, err error) {
	described, err := parseAttributes(body[unix.SizeofIfInfomsg:])
	info, infoErr := parseAttributes(described[unix.IFLA_LINKINFO])
	if err = errors.Join(err, infoErr); err != nil {
		return found, err
	}
	found.index, found.flags = binary.NativeEndian.Uint32(body[4:]), binary.NativeEndian.Uint32(body[8:])
	found.name, found.kind = unix.ByteSliceToString(described[unix.IFLA_IFNAME]), unix.ByteSliceToString(info[unix.IFLA_INFO_KIND])
	found.mac, found.peerNetns = described[unix.IFLA_ADDRESS], described[unix.IFLA_LINK_NETNSID]
	if peer := described[unix.IFLA_LINK]; len(peer) == 4 {
		found.peer = binary.NativeEndian.Uint32(peer)
	}
	return found, nil
}

// isAbsent reports whether this network namespace has no interface with an index. Netlink would describe it, which takes far longer
// for the notes of a thousand ports.
func isAbsent(index uint32) bool {
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(socket)
	name, err := unix.NewIfreq("")
	if err != nil {
		return false
	}
	name.SetUint32(index)
	return errors.Is(unix.IoctlIfreq(socket, unix.SIOCGIFNAME, name), unix.ENODEV)
}
