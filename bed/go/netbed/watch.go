package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

type watchRequest struct {
	In, Interface string
}

type observation struct {
	// AtMs since the epoch.
	AtMs      float64    `json:"atMs"`
	Frame     *frame     `json:"frame,omitempty"`
	Neighbour *neighbour `json:"neighbour,omitempty"`
	Learnt    *learnt    `json:"learnt,omitempty"`
}

// neighbour is an entry of the namespace's neighbour table after a change.
type neighbour struct {
	IP      string `json:"ip"`
	Mac     string `json:"mac"`
	State   string `json:"state"`
	Deleted bool   `json:"deleted"`
}

// learnt is the port at which a bridge has last seen a MAC address, after a change.
type learnt struct {
	Mac  string `json:"mac"`
	Port string `json:"port"`
}

var neighbourStates = map[int]string{
	netlink.NUD_INCOMPLETE: "incomplete", netlink.NUD_REACHABLE: "reachable", netlink.NUD_STALE: "stale", netlink.NUD_DELAY: "delay",
	netlink.NUD_PROBE: "probe", netlink.NUD_FAILED: "failed", netlink.NUD_NOARP: "noarp", netlink.NUD_PERMANENT: "permanent",
}

// watch reports claims of addresses on an interface and changes of its neighbour table, until it is stopped. For a bridge it also
// reports changes of the forwarding table.
func (b *bed) watch(ctx context.Context, request watchRequest, emit emit) (any, error) {
	s, err := b.find(request.In)
	if err != nil {
		return nil, err
	}
	socket, index, err := openPacketSocket(s, request.Interface)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	updates, end := make(chan netlink.NeighUpdate, 64), make(chan struct{})
	defer close(end)
	space := netns.NsHandle(s.net)
	if err := netlink.NeighSubscribeWithOptions(updates, end, netlink.NeighSubscribeOptions{Namespace: &space}); err != nil {
		return nil, fmt.Errorf("neighbours of %s: %w", request.In, err)
	}
	ports, err := netlink.NewHandleAt(space)
	if err != nil {
		return nil, err
	}
	defer ports.Close()
	go reportNeighbours(updates, index, ports, emit)
	emit("started")
	err = receive(ctx, socket, func(data []byte, outgoing bool) {
		if seen := parseFrame(data); seen != nil {
			seen.Outgoing = outgoing
			emit(observation{AtMs: now(), Frame: seen})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", request.Interface, request.In, err)
	}
	return done{}, nil
}

// receive calls each with the frames of a packet socket until the context ends. The data is valid during the call only.
func receive(ctx context.Context, socket int, each func(data []byte, outgoing bool)) error {
	buffer := make([]byte, 1<<16)
	for ctx.Err() == nil {
		length, from, err := unix.Recvfrom(socket, buffer, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		address, ok := from.(*unix.SockaddrLinklayer)
		each(buffer[:length], ok && address.Pkttype == unix.PACKET_OUTGOING)
	}
	return nil
}

func reportNeighbours(updates <-chan netlink.NeighUpdate, index int, ports *netlink.Handle, emit emit) {
	for update := range updates {
		if update.Family == unix.AF_BRIDGE && update.MasterIndex == index && update.Type == unix.RTM_NEWNEIGH {
			if port, err := ports.LinkByIndex(update.LinkIndex); err == nil {
				emit(observation{AtMs: now(), Learnt: &learnt{update.HardwareAddr.String(), port.Attrs().Name}})
			}
			continue
		}
		if update.LinkIndex != index || update.IP == nil || update.Family == unix.AF_BRIDGE {
			continue
		}
		seen := &neighbour{update.IP.String(), update.HardwareAddr.String(), neighbourStates[update.State], update.Type == unix.RTM_DELNEIGH}
		emit(observation{AtMs: now(), Neighbour: seen})
	}
}

func now() float64 { return float64(time.Now().UnixMicro()) / 1000 }

// openPacketSocket returns a socket for all frames of an interface, and the interface's index.
func openPacketSocket(s *space, name string) (socket, index int, err error) {
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
	return openSocketFor(all, s, name)
}

// openSendSocket returns a socket that receives nothing.
func openSendSocket(s *space, name string) (socket, index int, err error) {
	return openSocketFor(0, s, name)
}

func openSocketFor(protocol uint16, s *space, name string) (socket, index int, err error) {
	err = s.run(func() error {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		index = device.Index
		if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
			return err
		}
		if err := unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
			return err
		}
		// A timeout, so that the loop can check whether it has to end.
		return unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000})
	})
	return socket, index, err
}

// announce announces an address of the interface, as a guest does after a migration. With Mac it claims another MAC address.
func (b *bed) announce(request interfaceRequest) (any, error) {
	ip := net.ParseIP(request.Address)
	if ip == nil {
		return nil, fmt.Errorf("address %q is no IP address", request.Address)
	}
	return b.send(request, func(mac net.HardwareAddr) []byte { return announcement(ip, mac) })
}

// advertise sends a router advertisement of a prefix, whose host part is 0.
func (b *bed) advertise(request interfaceRequest) (any, error) {
	_, prefix, err := net.ParseCIDR(request.Address)
	if err != nil {
		return nil, err
	}
	return b.send(request, func(mac net.HardwareAddr) []byte { return routerAdvertisement(prefix, mac) })
}

// send sends one frame from the interface, made for the MAC address of the request or else of the interface.
func (b *bed) send(request interfaceRequest, frame func(net.HardwareAddr) []byte) (any, error) {
	s, err := b.find(request.In)
	if err != nil {
		return nil, err
	}
	socket, index, err := openPacketSocket(s, request.Interface)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	var mac net.HardwareAddr
	if request.Mac != "" {
		mac, err = net.ParseMAC(request.Mac)
	} else {
		err = s.run(func() error {
			device, err := net.InterfaceByIndex(index)
			if err == nil {
				mac = device.HardwareAddr
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return done{}, unix.Sendto(socket, frame(mac), 0, &unix.SockaddrLinklayer{Ifindex: index})
}
