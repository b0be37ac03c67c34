package main

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

type interfaceRequest struct {
	In        string
	Interface string
	Address   string // with prefix length
	Mac       string
	// AtOnce adds an IPv6 address without duplicate address detection.
	AtOnce bool
}

type interfaceAnswer struct {
	Name      string          `json:"name"`
	Kind      string          `json:"kind"`
	Mac       string          `json:"mac"`
	Up        bool            `json:"up"`
	MTU       int             `json:"mtu"`
	Addresses []addressAnswer `json:"addresses"`
}

type addressAnswer struct {
	Address string `json:"address"`
	// Of IPv6: duplicate address detection is running, or has found another owner.
	Tentative bool `json:"tentative"`
	DadFailed bool `json:"dadFailed"`
	LinkLocal bool `json:"linkLocal"`
}

// interfaces of a space, without lo.
func (b *bed) interfaces(request interfaceRequest) (any, error) {
	answers := []interfaceAnswer{}
	err := b.inside(request.In, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, link := range links {
			attrs := link.Attrs()
			if attrs.Name == "lo" {
				continue
			}
			addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
			if err != nil {
				return err
			}
			found := interfaceAnswer{attrs.Name, link.Type(), attrs.HardwareAddr.String(), attrs.Flags&net.FlagUp != 0, attrs.MTU, []addressAnswer{}}
			for _, a := range addresses {
				found.Addresses = append(found.Addresses, addressAnswer{
					Address:   a.IPNet.String(),
					Tentative: a.Flags&unix.IFA_F_TENTATIVE != 0,
					DadFailed: a.Flags&unix.IFA_F_DADFAILED != 0,
					LinkLocal: a.IP.IsLinkLocalUnicast(),
				})
			}
			answers = append(answers, found)
		}
		return nil
	})
	return answers, err
}

func (b *bed) inside(name string, act func() error) error {
	s, err := b.find(name)
	if err != nil {
		return err
	}
	return s.run(act)
}

// addAddress adds an address as a guest does.
func (b *bed) addAddress(request interfaceRequest) (any, error) {
	return done{}, b.inside(request.In, func() error { return addAddress(request.Interface, request.Address, request.AtOnce) })
}

func addAddress(name, address string, atOnce bool) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if atOnce && parsed.IP.To4() == nil {
		parsed.Flags |= unix.IFA_F_NODAD
	}
	return netlink.AddrReplace(link, parsed)
}

// flushAddresses removes all addresses except link-local ones.
func (b *bed) flushAddresses(request interfaceRequest) (any, error) {
	return done{}, b.inside(request.In, func() error {
		link, err := netlink.LinkByName(request.Interface)
		if err != nil {
			return fmt.Errorf("%s: %w", request.Interface, err)
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, address := range addresses {
			if address.IP.IsLinkLocalUnicast() {
				continue
			}
			if err := netlink.AddrDel(link, &address); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bed) setMac(request interfaceRequest) (any, error) {
	mac, err := net.ParseMAC(request.Mac)
	if err != nil {
		return nil, err
	}
	return done{}, b.inside(request.In, func() error {
		link, err := netlink.LinkByName(request.Interface)
		if err != nil {
			return fmt.Errorf("%s: %w", request.Interface, err)
		}
		return netlink.LinkSetHardwareAddr(link, mac)
	})
}
