package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// guest is a VM with two spaces: "guest/<id>" is its kernel, and "machine/<id>" takes the part of QEMU. Each interface of the
// guest ends at a bridge of the machine, which keeps its link up while the machine moves to another pod.
type guest struct {
	mutex   sync.Mutex
	machine *space
	inside  *space
	nics    map[string]*nic
	made    int
}

// nic is an interface of a guest. Its bridge and its port towards the pod are in the machine.
type nic struct {
	mac          net.HardwareAddr
	bridge, port string
}

type guestRequest struct {
	Guest string
	// Pod is the launcher, and Interface the one of the launcher.
	Pod, Interface string
	// Name and Mac are of the guest's interface.
	Name, Mac string
}

func (b *bed) addGuest(request guestRequest) (any, error) {
	g := &guest{nics: map[string]*nic{}}
	var err error
	for name, s := range map[string]**space{"guest/": &g.inside, "machine/": &g.machine} {
		if *s, err = newSpace(nil); err != nil {
			break
		}
		if err = b.remember(name+request.Guest, *s); err != nil {
			break
		}
	}
	if err != nil {
		_, _ = b.removeGuest(request)
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.guests[request.Guest] = g
	return podAnswer{g.inside.path()}, nil
}

func (b *bed) removeGuest(request guestRequest) (any, error) {
	b.forget("guest/" + request.Guest)
	b.forget("machine/" + request.Guest)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.guests, request.Guest)
	return done{}, nil
}

func (b *bed) findGuest(id string) (*guest, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if g := b.guests[id]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("there is no guest %q", id)
}

// prepare makes the interface of a launcher the port of a bridge in it, as virt-handler does for bridge binding (netpod.go). The
// port has the MAC address of the bridge, does not learn, and is up even if the plugin left it down. Idempotent.
func (b *bed) prepare(request guestRequest) (any, error) {
	launcher, err := b.find("pod/" + request.Pod)
	if err != nil {
		return nil, err
	}
	return done{}, launcher.run(func() error {
		link, err := netlink.LinkByName(request.Interface)
		if err != nil {
			return fmt.Errorf("%s: %w", request.Interface, err)
		}
		if link.Attrs().MasterIndex != 0 {
			return nil
		}
		bridge, err := ensureBridge(bridgeOf(request.Interface))
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		if err := netlink.LinkSetHardwareAddr(link, bridge.Attrs().HardwareAddr); err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(link, bridge); err != nil {
			return err
		}
		if err := netlink.LinkSetLearning(link, false); err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
}

// bridgeOf has KubeVirt's name of the bridge for an interface of a launcher.
func bridgeOf(name string) string { return "k6t-" + strings.TrimPrefix(name, "pod") }

// plugGuest connects an interface of a guest to that of a prepared launcher. The guest gets the interface if it does not have it. One that
// is connected to another launcher moves, and the guest's machine and driver announce it, as after a live migration.
func (b *bed) plugGuest(request guestRequest) (any, error) {
	g, err := b.findGuest(request.Guest)
	if err != nil {
		return nil, err
	}
	launcher, err := b.find("pod/" + request.Pod)
	if err != nil {
		return nil, err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	n, isMove := g.nics[request.Name], true
	if n == nil {
		isMove = false
		if n, err = g.add(request); err != nil {
			return nil, err
		}
	}
	if err := g.connect(n, launcher, request.Interface); err != nil {
		return nil, err
	}
	if isMove {
		err = g.announce(n, request.Name)
	}
	return done{}, err
}

func (b *bed) unplugGuest(request guestRequest) (any, error) {
	g, err := b.findGuest(request.Guest)
	if err != nil {
		return nil, err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	n := g.nics[request.Name]
	if n == nil {
		return done{}, nil
	}
	delete(g.nics, request.Name)
	if err := g.inside.run(func() error { return remove(request.Name) }); err != nil {
		return nil, err
	}
	return done{}, g.machine.run(func() error { return errors.Join(remove(n.port), remove(n.bridge)) })
}

// add gives the guest an interface, which ends at a bridge in the machine that floods.
func (g *guest) add(request guestRequest) (*nic, error) {
	mac, err := net.ParseMAC(request.Mac)
	if err != nil {
		return nil, err
	}
	g.made++
	n := &nic{mac: mac, bridge: fmt.Sprintf("wire%d", g.made)}
	err = g.machine.run(func() error {
		snooping := false
		bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs(), MulticastSnooping: &snooping}
		bridge.Name = n.bridge
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("bridge %s: %w", n.bridge, err)
		}
		// The machine's own kernel must not speak.
		if err := disableIPv6(n.bridge); err != nil {
			return err
		}
		veth := &netlink.Veth{
			LinkAttrs: netlink.NewLinkAttrs(), PeerName: request.Name, PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(g.inside.net),
		}
		veth.Name = fmt.Sprintf("nic%d", g.made)
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("interface %s of the guest: %w", request.Name, err)
		}
		return errors.Join(disableIPv6(veth.Name), enslave(veth.Name, n.bridge), up(veth.Name), up(n.bridge))
	})
	if err != nil {
		return nil, err
	}
	g.nics[request.Name] = n
	return n, nil
}

// connect replaces the connection of an interface to a launcher, if any, by one to another launcher. A bridge forwards to a new port
// only when the kernel has noticed its carrier, which may take a second: the guest is disconnected after that.
func (g *guest) connect(n *nic, launcher *space, podInterface string) error {
	g.made++
	port := fmt.Sprintf("pod%d", g.made)
	tap := "tap" + strings.TrimPrefix(podInterface, "pod")
	err := g.machine.run(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: tap, PeerNamespace: netlink.NsFd(launcher.net)}
		veth.Name = port
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("%s in the launcher: %w", tap, err)
		}
		return errors.Join(disableIPv6(port), up(port))
	})
	if err != nil {
		return err
	}
	err = launcher.run(func() error {
		return errors.Join(disableIPv6(tap), up(tap), awaitCarrier(tap), enslave(tap, bridgeOf(podInterface)))
	})
	if err != nil {
		return err
	}
	before := n.port
	n.port = port
	return g.machine.run(func() error {
		if err := awaitCarrier(port); err != nil {
			return err
		}
		if before != "" {
			if err := remove(before); err != nil {
				return err
			}
		}
		return enslave(port, n.bridge)
	})
}

const carrierLimit = 5 * time.Second

func awaitCarrier(name string) error {
	for end := time.Now().Add(carrierLimit); ; time.Sleep(5 * time.Millisecond) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if link.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s has no carrier after %s", name, carrierLimit)
		}
	}
}

// remove an interface of this space, which may have vanished with its peer.
func remove(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}
