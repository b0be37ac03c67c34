//go:build !guests

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Pods of "kubectl holdfast connectivity": one on each node of a pair. The first one only has an address; the second one
// asks who has it, and pings it.

const (
	askTries = 3
	askEvery = 300 * time.Millisecond
	maxHeard = 8 // hosts with one address
)

// connectivity is the result, as the termination message of the container.
type connectivity struct {
	MTU   int         `json:"mtu"`
	Own   []askedHost `json:"own"` // our addresses, and other hosts that have them
	Peers []askedHost `json:"peers"`
	Error string      `json:"error,omitempty"`
}

// askedHost is an address, and who has it on the wire.
type askedHost struct {
	Address netip.Addr `json:"address"`
	MACs    []mac      `json:"macs"`
	// Of peers only: what the host does not answer; empty if it does.
	Ping     string `json:"ping,omitempty"`
	FullSize string `json:"fullSize,omitempty"` // a packet of the size of the MTU, which no one may fragment
}

// runConnectivity ends with the process.
func runConnectivity(args []string) {
	flags := flag.NewFlagSet("connectivity", flag.ExitOnError)
	device := flags.String("interface", "net1", "interface of the network")
	peers := flags.String("peers", "", "addresses of the other pod, separated by commas; without them, the program waits until it is ended")
	result := flags.String("result", "/dev/termination-log", "file for the result")
	flags.Parse(args)
	if *peers == "" {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
		<-ended
		return
	}
	found, err := checkConnectivity(*device, strings.Split(*peers, ","))
	if err != nil {
		found.Error = err.Error()
	}
	text, err := json.Marshal(found)
	if err == nil {
		err = os.WriteFile(*result, text, 0o644)
	}
	if err != nil {
		fail("cannot write the result", err.Error())
	}
}

func checkConnectivity(name string, peers []string) (connectivity, error) {
	var found connectivity
	device, err := net.InterfaceByName(name)
	if err != nil {
		return found, err
	}
	found.MTU = device.MTU
	addresses, err := device.Addrs()
	if err != nil {
		return found, err
	}
	for _, each := range addresses {
		if prefix, err := netip.ParsePrefix(each.String()); err == nil && !prefix.Addr().IsLinkLocalUnicast() {
			found.Own = append(found.Own, askedHost{Address: prefix.Addr()})
		}
	}
	for _, each := range peers {
		address, err := netip.ParseAddr(each)
		if err != nil {
			return found, err
		}
		found.Peers = append(found.Peers, askedHost{Address: address})
	}
	if err := askAll(name, found, func(heard *hearing) {
		for _, hosts := range [][]askedHost{found.Own, found.Peers} {
			for i := range hosts {
				hosts[i].MACs = append([]mac{}, heard.hosts[hosts[i].Address]...)
			}
		}
	}); err != nil {
		return found, err
	}
	for i := range found.Peers {
		peer := &found.Peers[i]
		header := 20
		if peer.Address.Is6() {
			header = 40
		}
		peer.Ping = textOf(ping(device, peer.Address, header+64))
		peer.FullSize = textOf(ping(device, peer.Address, device.MTU))
	}
	return found, nil
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// askAll asks who has the addresses of a result, and passes what it heard to a function.
func askAll(name string, result connectivity, read func(heard *hearing)) error {
	asked := slices.Concat(result.Own, result.Peers)
	opened, err := openLink(name)
	if err != nil {
		return err
	}
	heard := newHearing(asked)
	go opened.receive(func(frame []byte, _ checksums) { heard.take(frame) })
	for range askTries {
		for _, host := range asked {
			frame, err := questionFrame(opened.mac(), result.Own, host.Address)
			if err != nil {
				return err
			}
			if err := opened.send(frame); err != nil && !errors.Is(err, syscall.ENOBUFS) {
				return err
			}
		}
		time.Sleep(askEvery)
	}
	heard.mutex.Lock()
	defer heard.mutex.Unlock()
	read(heard)
	return nil
}

// questionFrame asks who has an address. A guard passes a probe without a sender only for our own addresses.
func questionFrame(from mac, own []askedHost, address netip.Addr) ([]byte, error) {
	sender := noIPv4
	for _, each := range own {
		if each.Address == address {
			return probeFrame(from, address)
		}
		if each.Address.Is4() {
			sender = each.Address
		}
	}
	if address.Is4() {
		return arp{arpRequest, from, sender, mac{}, address}.frame(broadcastMAC), nil
	}
	return probeFrame(from, address)
}

// hearing notes which hosts have which addresses.
type hearing struct {
	mutex sync.Mutex
	hosts map[netip.Addr][]mac
}

func newHearing(asked []askedHost) *hearing {
	heard := &hearing{hosts: map[netip.Addr][]mac{}}
	for _, host := range asked {
		heard.hosts[host.Address] = nil
	}
	return heard
}

// take reads ARP replies and neighbour advertisements, which the filter has let through.
func (h *hearing) take(frame []byte) {
	if len(frame) < etherLength {
		return
	}
	from, body := mac(frame[6:12]), frame[etherLength:]
	switch uint16(frame[12])<<8 | uint16(frame[13]) {
	case etherARP:
		if got, ok := parseARP(body); ok && got.sender == from {
			h.note(got.senderIP, from)
		}
	case etherIPv6:
		if len(body) >= 40+24 && body[6] == protocolICMPv6 && body[7] == hopLimit && body[40] == icmpNeighbourAdvertisement {
			h.note(netip.AddrFrom16([16]byte(body[48:64])), from)
		}
	}
}

func (h *hearing) note(address netip.Addr, from mac) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	heard, isAsked := h.hosts[address]
	if isAsked && len(heard) < maxHeard && !slices.Contains(heard, from) {
		h.hosts[address] = append(heard, from)
	}
}
