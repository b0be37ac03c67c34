package main

import "net"

// packetLink is a link of the kernel.
type packetLink struct {
	name    string
	address mac
}

func openLink(name string) (link, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	var address mac
	if err := address.UnmarshalText([]byte(found.HardwareAddr.String())); err != nil {
		return nil, err
	}
	return &packetLink{name: name, address: address}, nil
}

func (l *packetLink) mac() mac { return l.address }

func (l *packetLink) hasAddress() (bool, error) {
	found, err := net.InterfaceByName(l.name)
	if err != nil {
		return false, err
	}
	addresses, err := found.Addrs()
	return len(addresses) > 0, err
}
