package main

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
)

// fabric is the switch between nodes and hosts: a space with one bridge for each segment.
type fabric struct {
	mutex sync.Mutex
	ports int
}

// connect creates a veth pair between a segment and a space, in which its end has the given name.
func (b *bed) connect(segment string, to *space, name string) error {
	b.fabric.mutex.Lock()
	defer b.fabric.mutex.Unlock()
	s, err := b.find("fabric")
	if err != nil {
		if s, err = newSpace(nil); err != nil {
			return err
		}
		if err := b.remember("fabric", s); err != nil {
			return err
		}
	}
	b.fabric.ports++
	port := fmt.Sprintf("port%d", b.fabric.ports)
	return s.run(func() error {
		bridge, err := ensureBridge(segment)
		if err != nil {
			return err
		}
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: name, PeerNamespace: netlink.NsFd(to.net)}
		veth.Name, veth.MasterIndex = port, bridge.Attrs().Index
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("veth %s for segment %s: %w", name, segment, err)
		}
		return up(port)
	})
}

func ensureBridge(name string) (netlink.Link, error) {
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = name
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("bridge %q: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("bridge %q: %w", name, err)
	}
	return link, netlink.LinkSetUp(link)
}

type joinRequest struct {
	Node    string
	Segment string
	// As "bridge": the node has a bridge of that name with an uplink to the segment, for the bridge plugin. As "nic": an
	// interface of that name is the node's end, for macvlan.
	As string
}

// join connects a node to the segment, once.
func (b *bed) join(request joinRequest) (any, error) {
	s, err := b.find("node/" + request.Node)
	if err != nil {
		return nil, err
	}
	b.mutex.Lock()
	n := b.nodes[request.Node]
	b.mutex.Unlock()
	n.joining.Lock()
	defer n.joining.Unlock()
	if n.joined[request.Segment] {
		return done{}, nil
	}
	end := request.Segment
	if request.As == "bridge" {
		end = fmt.Sprintf("uplink%d", len(n.joined))
	}
	if err := b.connect(request.Segment, s, end); err != nil {
		return nil, err
	}
	err = s.run(func() error {
		if request.As == "bridge" {
			if err := enslave(end, request.Segment); err != nil {
				return err
			}
		}
		return up(end)
	})
	if err != nil {
		return nil, err
	}
	n.joined[request.Segment] = true
	return done{}, nil
}

// enslave adds a port to a bridge, which may already exist with the interfaces of pods.
func enslave(port, bridgeName string) error {
	bridge, err := ensureBridge(bridgeName)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(port)
	if err != nil {
		return fmt.Errorf("%s: %w", port, err)
	}
	return netlink.LinkSetMaster(link, bridge)
}

type hostRequest struct {
	Name      string
	Segment   string
	Addresses []string
}

// addHost adds a host with one interface eth0 on a segment.
func (b *bed) addHost(request hostRequest) (any, error) {
	s, err := newSpace(nil)
	if err != nil {
		return nil, err
	}
	if err := b.connect(request.Segment, s, "eth0"); err != nil {
		s.close()
		return nil, err
	}
	err = s.run(func() error {
		if err := up("eth0"); err != nil {
			return err
		}
		for _, address := range request.Addresses {
			if err := addAddress("eth0", address, true); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.close()
		return nil, err
	}
	if err := b.remember("host/"+request.Name, s); err != nil {
		return nil, err
	}
	return podAnswer{s.path()}, nil
}

func (b *bed) removeHost(request hostRequest) (any, error) {
	b.forget("host/" + request.Name)
	return done{}, nil
}
