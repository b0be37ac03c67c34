//go:build guests

// With the build tag "guests" this is another program: generated guests on one interface, for measurements. They boot at
// once, and some renew, while frames without meaning are sent. It prints what was answered as JSON.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

const (
	resendAfter = time.Second
	stepEvery   = 5 * time.Millisecond
	// The sender, or the program that answers, may have no core for a while.
	lostAfter = 5 * time.Second
)

// results is what the program prints.
type results struct {
	Booted     int     `json:"booted"`
	BootMs     float64 `json:"bootMs"` // from the first DISCOVER to the last ACK
	Resent     int     `json:"resent"`
	Renewals   int     `json:"renewals"`
	Answered   int     `json:"answered"`
	WorstMs    float64 `json:"worstMs"` // of the renewals
	Garbage    uint64  `json:"garbage"`
	SendErrors uint64  `json:"sendErrors"`
}

// generated is a guest that boots.
type generated struct {
	mac     mac
	address netip.Addr
	server  netip.Addr
	sentAt  time.Time
	last    []byte
}

// crowd is all generated guests.
type crowd struct {
	mutex   sync.Mutex
	link    *packetLink
	guests  map[mac]*generated
	order   []*generated
	booted  int
	results results
	// renewedAt has the renewals that were not answered yet.
	renewedAt map[mac]time.Time
	garbage   atomic.Uint64
	errors    atomic.Uint64
}

func main() {
	name := flag.String("interface", "eth0", "interface")
	count := flag.Int("count", 500, "guests, with the MAC addresses 02:fe:00:00:00:00 and the next ones")
	renewing := flag.Int("renewing", 0, "guests that renew once a second after all have booted")
	renew := flag.Duration("renew", 0, "how long they renew; SIGTERM ends it earlier")
	garbage := flag.Int("garbage", 0, "frames without meaning in a second, meanwhile")
	timeout := flag.Duration("timeout", 30*time.Second, "how long guests may boot")
	loaded := flag.String("load", "", "measure boot4, renew4, boot6 or renew6 instead: so many a second are answered")
	window := flag.Int("window", 64, "guests that ask at the same time, meanwhile")
	first := flag.Int("first", 0, "the first guest that asks, meanwhile")
	duration := flag.Duration("for", 4*time.Second, "how long to measure")
	flag.Parse()
	if *loaded != "" {
		results, err := runLoad(*name, *loaded, *first, *count, *window, *duration)
		if err != nil {
			log.Fatal(err)
		}
		json.NewEncoder(os.Stdout).Encode(results)
		return
	}
	link, err := listenToAll(*name)
	if err != nil {
		log.Fatal(err)
	}
	all := &crowd{link: link, guests: map[mac]*generated{}, renewedAt: map[mac]time.Time{}}
	for number := range *count {
		made := &generated{mac: macOfGuest(number)}
		all.guests[made.mac], all.order = made, append(all.order, made)
	}
	go all.receive()
	all.boot(*timeout)
	log.Printf("%d guests have an address", all.results.Booted)
	if all.results.Booted == *count && *renewing > 0 {
		stop := make(chan struct{})
		if *garbage > 0 {
			go all.sendGarbage(*garbage, all.order[*renewing:], stop)
		}
		all.renew(all.order[:*renewing], *renew)
		close(stop)
	}
	all.results.Garbage, all.results.SendErrors = all.garbage.Load(), all.errors.Load()
	json.NewEncoder(os.Stdout).Encode(all.results)
}

// listenToAll opens a socket for the answers to all generated guests.
func listenToAll(name string) (*packetLink, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	opened, err := listenTo(found, unix.ETH_P_IP, join(load(etherLength+20+2, 2), acceptIf(dhcp4Client)))
	if err != nil {
		return nil, err
	}
	return opened, opened.conn.SetPromiscuous(true)
}

func (c *crowd) send(frame []byte) {
	if c.link.send(frame) != nil {
		c.errors.Add(1)
	}
}

// message returns the frame of a message of a guest.
func message(from mac, to netip.Addr, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) []byte {
	made, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithHwAddr(from[:]), dhcpv4.WithMessageType(kind), dhcpv4.WithBroadcast(true),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionInterfaceMTU),
	}, change...)...)
	if err != nil {
		log.Fatal(err)
	}
	source, _ := netip.AddrFromSlice(made.ClientIPAddr.To4())
	return ethernet(broadcastMAC, from, etherIPv4, ipv4(datagram{
		from: netip.AddrPortFrom(source, dhcp4Client), to: netip.AddrPortFrom(to, dhcp4Server), payload: made.ToBytes(),
	}))
}

// boot lets all guests ask for an address at once, and again after a second without an answer.
func (c *crowd) boot(timeout time.Duration) {
	began := time.Now()
	for now := began; now.Sub(began) < timeout; now = time.Now() {
		c.mutex.Lock()
		if c.booted == len(c.order) {
			c.mutex.Unlock()
			break
		}
		for _, each := range c.order {
			if each.address.IsValid() && each.last == nil || now.Sub(each.sentAt) < resendAfter {
				continue
			}
			if each.last == nil {
				each.last = message(each.mac, broadcastIPv4, dhcpv4.MessageTypeDiscover)
			} else {
				c.results.Resent++
			}
			each.sentAt = now
			c.send(each.last)
		}
		c.mutex.Unlock()
		time.Sleep(stepEvery)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.results.Booted = c.booted
	c.results.BootMs = float64(time.Since(began).Microseconds()) / 1000
}

func (c *crowd) receive() {
	log.Fatal(c.link.receive(func(frame []byte, _ checksums) {
		got, ok := parseIPv4(frame[min(etherLength, len(frame)):])
		if !ok {
			return
		}
		if answer, err := dhcpv4.FromBytes(got.payload); err == nil && answer.OpCode == dhcpv4.OpcodeBootReply {
			c.take(answer)
		}
	}))
}

// take handles an answer: the guest asks for the offered address, and has booted when that is acknowledged.
func (c *crowd) take(answer *dhcpv4.DHCPv4) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(answer.ClientHWAddr) != 6 {
		return
	}
	from := c.guests[mac(answer.ClientHWAddr)]
	switch {
	case from == nil:
	case answer.MessageType() == dhcpv4.MessageTypeOffer && !from.address.IsValid():
		from.server = ipv4Option(answer, dhcpv4.OptionServerIdentifier)
		from.address, _ = netip.AddrFromSlice(answer.YourIPAddr.To4())
		from.last = message(from.mac, broadcastIPv4, dhcpv4.MessageTypeRequest,
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(from.server.AsSlice())),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(from.address.AsSlice())))
		from.sentAt = time.Now()
		c.send(from.last)
	case answer.MessageType() == dhcpv4.MessageTypeAck && from.last != nil && from.address.IsValid():
		from.last = nil
		c.booted++
	case answer.MessageType() == dhcpv4.MessageTypeAck:
		if at, exists := c.renewedAt[from.mac]; exists {
			delete(c.renewedAt, from.mac)
			c.results.Answered++
			c.results.WorstMs = max(c.results.WorstMs, float64(time.Since(at).Microseconds())/1000)
		}
	}
}

// renew lets guests renew once a second, after the last answer. A renewal without an answer is lost after five seconds.
func (c *crowd) renew(guests []*generated, duration time.Duration) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	pause := time.Second / time.Duration(len(guests))
	for began := time.Now(); time.Since(began) < duration && len(ended) == 0; {
		for _, each := range guests {
			c.mutex.Lock()
			if at, waits := c.renewedAt[each.mac]; !waits || time.Since(at) > lostAfter {
				c.results.Renewals++
				c.renewedAt[each.mac] = time.Now()
				c.send(message(each.mac, broadcastIPv4, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(each.address.AsSlice())))
			}
			c.mutex.Unlock()
			time.Sleep(pause)
		}
	}
	for ended := time.Now(); time.Since(ended) < lostAfter && c.waits(); {
		time.Sleep(stepEvery)
	}
}

// waits tells whether a renewal was not answered yet.
func (c *crowd) waits() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.renewedAt) > 0
}

// sendGarbage sends frames that mean nothing: broken DHCP of known guests, DHCP of unknown ones, and random bytes.
func (c *crowd) sendGarbage(perSecond int, from []*generated, stop chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		for range perSecond / 100 {
			frame := message(from[rand.IntN(len(from))].mac, broadcastIPv4, dhcpv4.MessageTypeDiscover)
			switch rand.IntN(3) {
			case 0: // options without an end
				for index := etherLength + 28 + dhcp4Fixed; index < len(frame); index++ {
					frame[index] = byte(rand.IntN(256))
				}
			case 1: // unknown
				frame[7]++
			case 2: // ARP, neighbour discovery and DHCPv6 are as random
				for index := etherLength; index < len(frame); index++ {
					frame[index] = byte(rand.IntN(256))
				}
				kind := [][]byte{{8, 6}, {0x86, 0xdd}, {8, 0}}[rand.IntN(3)]
				copy(frame[12:], kind)
			}
			c.garbage.Add(1)
			c.send(frame)
		}
	}
}
